import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";

// It is told to be experimental, once a process, to whoever reads the output of a command.
const { emitWarning } = process;
process.emitWarning = () => {};
stripTypeScriptTypes("");
process.emitWarning = emitWarning;

const own = new URL("../../", import.meta.url).href;

registerHooks({
  load(url, context, next) {
    if (!url.startsWith(own) || !url.endsWith(".ts")) return next(url, context);
    return { format: "module", shortCircuit: true, source: stripTypeScriptTypes(readFileSync(new URL(url), "utf8")) };
  },
});
