import { SECRET } from "../secrets.ts";

/** RFC 9110, section 5.6.2: a token. */
const NAME = /^[!#$%&'*+.^_`|~0-9a-zA-Z-]+$/;
/** Section 5.5, with the Latin-1 that HTTP/1.1 carries. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const OF_CONNECTION: ReadonlySet<string> = new Set([
  ...["connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "upgrade"],
]);

/** TOOL-3: what is wrong with the headers of a tool's requests, each fault with its path. No fault tells a secret. */
export function faultsOfHeaders(
  headers: Readonly<Record<string, string>>,
  secrets: ReadonlyMap<string, string>,
): string[] {
  const seen = new Set<string>();
  return Object.entries(headers).flatMap(([name, template]) => {
    const path = NAME.test(name) ? `execution.headers.${name}` : `execution.headers[${JSON.stringify(name)}]`;
    const known = name.toLowerCase();
    const isTwice = seen.has(known);
    seen.add(known);
    const faults = [...(isTwice ? ["is there twice, since case means nothing in names of headers"] : [])];
    if (!NAME.test(name)) faults.push("is no name of a header");
    if (OF_CONNECTION.has(known)) faults.push("belongs to the connection, and is set by the router alone");
    return [...faults, ...faultsOfValue(template, secrets)].map((fault) => `${path}: ${fault}`);
  });
}

function faultsOfValue(template: string, secrets: ReadonlyMap<string, string>): string[] {
  const names = new Set([...template.matchAll(SECRET)].map(([, name = ""]) => name));
  const faults = [...names]
    .filter((name) => !secrets.has(name))
    .map((name) => `the secret ${name} is not set: give TOOLBUS_SECRET_${name} to the tool router`);
  if (template.replace(SECRET, "").includes(`\${secret:`))
    faults.push(`a secret is written \${secret:NAME}, with letters, digits and _`);
  const value = template.replace(SECRET, (_, name: string) => secrets.get(name) ?? "");
  if (!VALUE.test(value)) faults.push("holds a line break or another character that no header can hold");
  return faults;
}
