import { fileURLToPath } from "node:url";
import type { DescMethod } from "@bufbuild/protobuf";
import { Rule } from "#gen/toolbus/access/v1/access_pb.ts";
import { ruleOf } from "#runtime/rpc/access/rules.ts";
import { nameOf } from "./attempts.ts";

export const accessPath = fileURLToPath(new URL("../../../docs/operations/access.md", import.meta.url));

export const askers = ["no key", "stranger", "owner", "call key", "operator", "service"] as const;
export type Asker = (typeof askers)[number];
/** What each asker got. */
export type Row = { method: DescMethod; got: Record<Asker, string> };

const intro = `# Who may call what

A test calls every method in a suite of processes and writes this page (\`npx vitest run test/system/access -u\`). The rule stands in the
contract; the other columns say what each asker got: **yes**, **part** (what only operators may read was left out), or the reason
of the refusal.

- The *owner* has a key, and opened the session, run and call that are asked for. The *stranger* has another key. The *operator* is in
  \`TOOLBUS_OPERATORS\`, and has opened nothing. The *service* is one of the suite's own, on the bus.
- The *call key* is a key of one call ([a link for somebody else](questions.md#a-link-for-somebody-else)), made by the owner for a call that
  waits for a person. What takes it was asked of that call.
- Lists without a session hold what belongs to the asker.
- Services below *Not offered by the gateway* were asked on the bus, past the gateway, in the name of the asker.
`;

export function pageFrom(offered: readonly Row[], internal: readonly Row[]): string {
  return [
    intro,
    "## Offered by the gateway\n",
    ...tableOf(offered),
    "\n## Not offered by the gateway\n",
    ...tableOf(internal),
  ]
    .join("\n")
    .concat("\n");
}

function tableOf(rows: readonly Row[]): string[] {
  const head = ["| method | rule |", ...askers.map((asker) => ` ${asker} |`)].join("");
  const line = ["|---|---|", ...askers.map(() => "---|")].join("");
  const body = rows.map(({ method, got }) => {
    const rule = (Object.entries(Rule).find(([, value]) => value === ruleOf(method))?.[0] ?? "").toLowerCase();
    return [`| \`${nameOf(method)}\` | ${rule} |`, ...askers.map((asker) => ` ${got[asker]} |`)].join("");
  });
  return [head, line, ...body.sort()];
}

/** What the page says that each asker gets, by the method's name. */
export function rowsOfPage(page: string): Map<string, Record<Asker, string>> {
  const lines = page.split("\n").filter((line) => line.startsWith("| `"));
  const cells = lines.map((line) => line.split("|").map((cell) => cell.trim().replaceAll("`", "")));
  return new Map(
    cells.map(([, name = "", , ...got]) => [
      name,
      Object.fromEntries(askers.map((asker, index) => [asker, got[index]])) as Record<Asker, string>,
    ]),
  );
}
