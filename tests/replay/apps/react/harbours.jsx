import { useEffect, useState } from "react";
import chart from "./chart.svg";

export default function Harbours() {
  const [rows, setRows] = useState(null);
  useEffect(() => {
    const ended = new AbortController();
    fetch("/react/api/harbours.json", { signal: ended.signal })
      .then((got) => got.json()).then(setRows, () => {});
    return () => ended.abort();
  }, []);
  if (!rows) return <p>Wait.</p>;
  return (
    <>
      <img src={chart} width="240" height="120" alt="" />
      <ul>{rows.map((row) => <li key={row.name}>{row.name}: {row.depth} m</li>)}</ul>
      <p>{rows.length} harbours, mounted</p>
    </>
  );
}
