import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Rule } from "#gen/toolbus/access/v1/access_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { ruleOf } from "#runtime/rpc/access/rules.ts";
import { internalServices, publicServices } from "../../services/processes.ts";

/** Written by test/system/access, which also compares what each asker gets. */
export const accessPath = "docs/operations/access.md";

/** Methods without a rule, and rows of the page that say another one than the contract. */
export async function faultsInAccess(root: string): Promise<string[]> {
  const methods = [...publicServices, ...internalServices, ToolProviderService].flatMap((service) => service.methods);
  const stated = rowsOf(await readFile(join(root, accessPath), "utf8"));
  const names = new Set(methods.map(({ parent, name }) => `${parent.name}.${name}`));
  const gone = [...stated.keys()].filter((name) => !names.has(name));
  const wrong = methods.flatMap((method) => {
    const name = `${method.parent.name}.${method.name}`;
    const rule = ruleOf(method);
    if (rule === Rule.UNSPECIFIED) return [`${name} has no rule`];
    const text = Object.entries(Rule)
      .find(([, value]) => value === rule)?.[0]
      .toLowerCase();
    return stated.get(name) === text ? [] : [`${accessPath}: ${name} has the rule ${text}, not ${stated.get(name)}`];
  });
  return [...wrong, ...gone.map((name) => `${accessPath}: there is no method ${name}`)];
}

function rowsOf(page: string): Map<string, string> {
  const rows = page.matchAll(/^\| `([\w.]+)` \| (\w+) \|/gm);
  return new Map([...rows].map(([, name = "", rule = ""]) => [name, rule]));
}
