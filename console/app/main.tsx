import { render } from "preact";
import { Shell } from "./shell.tsx";

const element = document.getElementById("app");
if (!element) throw new Error("the page has no place for the console");
render(<Shell />, element);
