/** RFC 9110, section 5.6.2: a token. */
const NAME = /^[!#$%&'*+.^_`|~0-9a-zA-Z-]+$/;
/** Section 5.5, with the Latin-1 that HTTP/1.1 carries. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const OF_CONNECTION: ReadonlySet<string> = new Set([
  ...["connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "upgrade"],
]);

export function isHeaderName(name: string): boolean {
  return NAME.test(name);
}

/** What is wrong with the names of headers that are given for a request, by the name as it is written. */
export function faultsOfHeaderNames(names: readonly string[]): { name: string; fault: string }[] {
  const seen = new Set<string>();
  return names.flatMap((name) => {
    const known = name.toLowerCase();
    const isTwice = seen.has(known);
    seen.add(known);
    const faults = [...(isTwice ? ["is there twice, since case means nothing in names of headers"] : [])];
    if (!NAME.test(name)) faults.push("is no name of a header");
    if (OF_CONNECTION.has(known)) faults.push("belongs to the connection, and cannot be given");
    return faults.map((fault) => ({ name, fault }));
  });
}

export function faultOfHeaderValue(value: string): string | undefined {
  return VALUE.test(value) ? undefined : "holds a line break or another character that no header can hold";
}
