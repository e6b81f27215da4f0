/** The metadata of a request, made when somebody asks for it. */
export class LazyMetadata {
  readonly #init: ConstructorParameters<typeof Headers>[0];
  #headers: Headers | undefined;

  constructor(init: ConstructorParameters<typeof Headers>[0]) {
    this.#init = init;
  }

  get headers(): Headers {
    this.#headers ??= new Headers(this.#init);
    return this.#headers;
  }

  /** The metadata if there is or may be any. */
  get touched(): Headers | undefined {
    return this.#init === undefined ? this.#headers : this.headers;
  }
}
