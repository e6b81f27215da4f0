import { text as readText } from "node:stream/consumers";
import type { Command } from "commander";
import { UsageFault } from "../../faults/fault.ts";
import { faultOfKey, type GlobalOptions, globalOptionsOf } from "../../global-options.ts";
import { printJson, printLine, printNote, printTable } from "../../printing/print.ts";
import { type Context, contextNamed, readContexts, writeContexts } from "../../project/contexts.ts";

const NAME = /^[\w.-]{1,64}$/;

export function addContextCommand(program: Command): void {
  const context = program
    .command("context")
    .description("Keep addresses and keys of suites elsewhere, for --context and TOOLBUS_CONTEXT");
  context
    .command("set")
    .description("Keep the address of --url, and the key of --api-key or TOOLBUS_API_KEY if there is one, under a name")
    .argument("<name>")
    .option("--api-key-stdin", "read the key from standard input: what stands in a command, others can see")
    .action(setContext);
  context.command("list").description("List contexts, without their keys").action(listContexts);
  context.command("delete").description("Forget a context").argument("<name>").action(deleteContext);
}

async function setContext(name: string, options: { apiKeyStdin?: boolean }, command: Command): Promise<void> {
  if (!NAME.test(name)) throw new UsageFault("a name of a context has letters, digits, _, - and .; at most 64");
  const given = command.optsWithGlobals<GlobalOptions>();
  if (command.getOptionValueSourceWithGlobals("url") === "default") throw new UsageFault("say where it is: --url URL");
  const apiKey = options.apiKeyStdin ? await keyFromStandardInput() : given.apiKey;
  const context: Context = { url: given.url, ...(apiKey !== undefined && { apiKey }) };
  await writeContexts(readContexts().set(name, context));
  if (given.json) return printJson(withoutKey([name, context]));
  printNote(
    `toolbus --context ${name} …  asks the suite at ${given.url}${apiKey === undefined ? ", without a key" : ""}`,
  );
}

function listContexts(_options: object, command: Command): void {
  const contexts = [...readContexts()].map(withoutKey);
  const rows = contexts.map(({ name, url, hasKey }) => [name, url, hasKey ? "yes" : "no"]);
  if (globalOptionsOf(command).json) printJson({ contexts });
  else printTable(["NAME", "URL", "KEY"], rows);
}

async function deleteContext(name: string, _options: object, command: Command): Promise<void> {
  const context = contextNamed(name);
  const contexts = readContexts();
  contexts.delete(name);
  await writeContexts(contexts);
  if (globalOptionsOf(command).json) return printJson(withoutKey([name, context]));
  printLine(`there is no context ${name} any more`);
}

/** What may be printed of it. */
function withoutKey([name, { url, apiKey }]: [name: string, context: Context]) {
  return { name, url, hasKey: apiKey !== undefined };
}

async function keyFromStandardInput(): Promise<string> {
  const key = (await readText(process.stdin)).trim();
  const fault = faultOfKey(key);
  if (fault !== undefined) throw new UsageFault(`the key of standard input: ${fault}`);
  return key;
}
