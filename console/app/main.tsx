import { render } from "preact";
import { resumeLogin } from "../suite/login/login.ts";
import { Shell } from "./shell.tsx";

const element = document.getElementById("app");
if (!element) throw new Error("the page has no place for the console");
await resumeLogin();
render(<Shell />, element);
