import { createApp } from "vue";
import { createRouter, createWebHashHistory } from "vue-router";
import App from "./App.vue";
import Buoys from "./Buoys.vue";

const routes = [
  { path: "/", component: Buoys },
  { path: "/log", component: () => import("./Log.vue") },
];
createApp(App).use(createRouter({ history: createWebHashHistory(), routes })).mount("#app");
