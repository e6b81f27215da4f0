const names = new Set(["127.0.0.1", "::1", "[::1]", "localhost"]);

/** Whether a host is this machine, as an address to listen on or in a URL. */
export function isLoopback(host: string): boolean {
  return names.has(host);
}
