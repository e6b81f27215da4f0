import { faultOfHeaderValue, faultsOfHeaderNames, isHeaderName } from "#runtime/http/header-syntax.ts";
import { SECRET } from "../secrets.ts";

/** TOOL-3: what is wrong with the headers of a tool's requests, each fault with its path. No fault tells a secret. */
export function faultsOfHeaders(
  headers: Readonly<Record<string, string>>,
  secrets: ReadonlyMap<string, string>,
): string[] {
  const ofNames = faultsOfHeaderNames(Object.keys(headers));
  return Object.entries(headers).flatMap(([name, template]) => {
    const path = isHeaderName(name) ? `execution.headers.${name}` : `execution.headers[${JSON.stringify(name)}]`;
    const faults = ofNames.flatMap((found) => (found.name === name ? [found.fault] : []));
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
  const unfit = faultOfHeaderValue(value);
  return unfit === undefined ? faults : [...faults, unfit];
}
