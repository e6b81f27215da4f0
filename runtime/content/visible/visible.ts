/** C0 but tab and line feed, DEL, C1, and what changes the direction of text. */
const CONTROLS = /(?![\t\n])[\p{Cc}\p{Bidi_Control}]/gu;

/**
 * Text of models, tools, people and servers, for a terminal: a control character stands there as a sign of its own and does nothing,
 * so that no text moves the cursor, writes to the clipboard or hides what stands beside it.
 */
export function visibleText(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(CONTROLS, signOf);
}

/** The same JSON value; what a terminal would obey stands in it as `\u` escapes. */
export function visibleJson(json: string): string {
  return json.replace(CONTROLS, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A line of JSON whose strings hold signs in place of control characters, escaped or not, however it is shown. */
export function visibleLog(line: string): string {
  return visibleText(line).replace(
    /\\(\\|[bfr]|u00[01][0-9a-f])/g,
    (sequence) => ESCAPED_SIGNS[sequence] ?? signOfEscape(sequence),
  );
}

const ESCAPED_SIGNS: Record<string, string> = { "\\\\": "\\\\", "\\b": "␈", "\\f": "␌", "\\r": "␍" };

function signOfEscape(sequence: string): string {
  return signOf(String.fromCharCode(Number.parseInt(sequence.slice(2), 16)));
}

/** Unicode has a picture for each of C0 and for DEL. */
function signOf(control: string): string {
  const code = control.charCodeAt(0);
  if (code === 0x7f) return "\u2421";
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : "\ufffd";
}
