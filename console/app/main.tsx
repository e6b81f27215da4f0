import { render } from "preact";
import { resumeLogin } from "../suite/login/login.ts";
import { Shell } from "./shell.tsx";
import { showControls } from "./visible-text.ts";

const element = document.getElementById("app");
if (!element) throw new Error("the page has no place for the console");
showControls();
await resumeLogin();
render(<Shell />, element);
