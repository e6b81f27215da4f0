/** What may be shown of an address to everybody: no credentials, path or query, which may hold a token; empty for what is no URL. */
export function originOfUrl(text: string): string {
  const url = URL.parse(text);
  return url === null ? "" : `${url.protocol}//${url.host}`;
}
