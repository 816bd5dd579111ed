import { css, injectGlobal } from "@emotion/css";
import font from "@fontsource/lobster/files/lobster-latin-400-normal.woff2";
import { StrictMode, Suspense, lazy } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter, Link, Route, Routes } from "react-router";
import Harbours from "./harbours.jsx";

// Fetched when it is wanted, as a file of its own.
const Tides = lazy(() => import("./tides.jsx"));

injectGlobal`
  @font-face { font-family: Lobster; src: url(${font}) format("woff2"); }
  body { margin: 24px; font: 16px/1.5 monospace; }
`;
const title = css`font: 40px Lobster; color: #17323f; &:hover { color: #bc4749; }`;

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <BrowserRouter basename="/react">
      <h1 className={title}>Harbours</h1>
      <nav><Link to="/">All</Link> <Link to="/tides">Tides</Link></nav>
      <Suspense fallback={<p>Wait.</p>}>
        <Routes>
          <Route path="/" element={<Harbours />} />
          <Route path="/tides" element={<Tides />} />
        </Routes>
      </Suspense>
    </BrowserRouter>
  </StrictMode>,
);
