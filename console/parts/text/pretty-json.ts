const JSON_TOKENS = /"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[{\]},:]|\s+/g;

/** JSON as one reads it, with the numbers that it was written with; the text itself where it is none. */
export function prettyJson(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let line = "\n";
  return text.replace(JSON_TOKENS, (token) => {
    if (token.startsWith('"')) return JSON.stringify(JSON.parse(token));
    if (token === ",") return token + line;
    if (token === ":") return ": ";
    if (token === "{" || token === "[") {
      line += "  ";
      return token + line;
    }
    if (token !== "}" && token !== "]") return token.trim() && `${token[0]}${token.at(-1)}`;
    line = line.slice(0, -2);
    return line + token;
  });
}
