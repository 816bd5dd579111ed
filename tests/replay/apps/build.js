// Build each application as its framework's users do, into ../built/NAME.
import { build } from "vite";
import react from "@vitejs/plugin-react";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import vue from "@vitejs/plugin-vue";

for (const [name, plugin] of Object.entries({ react, svelte, vue })) {
  await build({
    root: new URL(name, import.meta.url).pathname,
    base: `/${name}/`,
    configFile: false,
    plugins: [plugin()],
    logLevel: "warn",
    build: { outDir: `../../built/${name}`, emptyOutDir: true, assetsInlineLimit: 0 },
  });
}
