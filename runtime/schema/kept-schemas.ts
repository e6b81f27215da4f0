import type { Compiled } from "./dialects.ts";

export interface KeptSchemasOptions {
  compile: (text: string) => Compiled;
  maxSchemas: number;
  maxCharacters: number;
}

/** Compiled schemas under their texts, the last used of them. */
export class KeptSchemas {
  readonly #options: KeptSchemasOptions;
  readonly #byText = new Map<string, Compiled>();
  #characters = 0;

  constructor(options: KeptSchemasOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#byText.size;
  }

  /** Of all texts together. */
  get characters(): number {
    return this.#characters;
  }

  /** Compiles what is not kept. */
  get(text: string): Compiled {
    const { compile, maxSchemas, maxCharacters } = this.#options;
    const found = this.#byText.get(text);
    const schema = found ?? compile(text);
    if (found === undefined) this.#characters += text.length;
    else this.#byText.delete(text); // the last used stands last
    this.#byText.set(text, schema);
    while (this.size > maxSchemas || (this.#characters > maxCharacters && this.size > 1)) this.#forgetOldest();
    return schema;
  }

  #forgetOldest(): void {
    const [text, oldest] = this.#byText.entries().next().value!;
    this.#byText.delete(text);
    this.#characters -= text.length;
    if (oldest.kind === "compiled") oldest.remove();
  }
}
