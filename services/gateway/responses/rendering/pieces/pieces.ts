/**
 * Where a text is cut into deltas. It follows from the text alone, and not from how it came: so a text that is sent again, by any
 * gateway, has the same deltas under the same numbers. The first is one character, so that it waits for nothing; those of a long
 * text are larger.
 */
export class Pieces {
  /** How much of the text was cut. */
  #end = 0;

  /** The pieces of the text that it did not give before; the last one may be smaller once the text is whole. */
  *of(text: string, isWhole: boolean): Generator<string> {
    for (;;) {
      const end = endOfPiece(text, this.#end, sizeAt(this.#end));
      if (end === undefined && (!isWhole || this.#end >= text.length)) return;
      const piece = text.slice(this.#end, end);
      this.#end += piece.length;
      yield piece;
    }
  }
}

/** In code points. */
function sizeAt(place: number): number {
  if (place === 0) return 1;
  if (place < 256) return 4;
  return place < 4_096 ? 16 : 64;
}

/** Undefined where the text does not reach so far. No character is cut in two. */
function endOfPiece(text: string, start: number, size: number): number | undefined {
  let end = start;
  for (let count = 0; count < size; count += 1) {
    const point = text.codePointAt(end);
    if (point === undefined) return undefined;
    const isHalf = point >= 0xd800 && point <= 0xdbff; // the other half may follow
    if (isHalf && end + 1 >= text.length) return undefined;
    end += point > 0xffff ? 2 : 1;
  }
  return end;
}
