export interface KeptSchemasOptions<T> {
  /** Opens compilers that hold nothing yet. */
  open: () => { compile: (text: string) => T };
  maxSchemas: number;
  maxCharacters: number;
}

/**
 * Compiled schemas under their texts. A compiler holds what it compiled for as long as it lives: so all are forgotten together,
 * with their compilers, when they become too many or too large.
 */
export class KeptSchemas<T> {
  readonly #options: KeptSchemasOptions<T>;
  readonly #byText = new Map<string, T>();
  #compilers: ReturnType<KeptSchemasOptions<T>["open"]>;
  #characters = 0;

  constructor(options: KeptSchemasOptions<T>) {
    this.#options = options;
    this.#compilers = options.open();
  }

  get size(): number {
    return this.#byText.size;
  }

  /** Of all texts together. */
  get characters(): number {
    return this.#characters;
  }

  /** Compiles what is not kept. */
  get(text: string): T {
    const found = this.#byText.get(text);
    if (found !== undefined) return found;
    const { maxSchemas, maxCharacters } = this.#options;
    if (this.size >= maxSchemas || this.#characters + text.length > maxCharacters) this.forget();
    const schema = this.#compilers.compile(text);
    this.#byText.set(text, schema);
    this.#characters += text.length;
    return schema;
  }

  forget(): void {
    this.#byText.clear();
    this.#characters = 0;
    this.#compilers = this.#options.open();
  }
}
