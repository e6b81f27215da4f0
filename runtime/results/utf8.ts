const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

/** As many whole characters of a UTF-8 text as fit into that many bytes. */
export function charactersUpTo(text: Buffer, bytes: number): Buffer {
  let end = Math.min(bytes, text.length);
  while (end > 0 && isContinuation(text[end])) end -= 1;
  return text.subarray(0, end);
}

/** The text from the first whole character on, when it was cut somewhere. */
export function fromWholeCharacter(text: Buffer): Buffer {
  let start = 0;
  while (isContinuation(text[start])) start += 1;
  return text.subarray(start);
}
