import type { OfferedFile } from "../files/tool-file.ts";

export interface InstallParts {
  /** The lines that uv writes. */
  onLine: (line: string) => void;
}

/** Installs what files need, each version once, however many ask; a failed one is tried again by the next who asks. */
export class Installations implements AsyncDisposable {
  readonly #install: (file: OfferedFile, signal: AbortSignal) => Promise<string>;
  readonly #pythons = new Map<string, { digest: string; python: Promise<string> }>();
  readonly #stop = new AbortController();
  #last: Promise<unknown> = Promise.resolve();

  constructor(install: (file: OfferedFile, signal: AbortSignal) => Promise<string>) {
    this.#install = install;
  }

  /** The path of the Python that has what the file needs. */
  python(file: OfferedFile): Promise<string> {
    const found = this.#pythons.get(file.file);
    if (found?.digest === file.digest) return found.python;
    // The environments of two versions of a file lie in one place: one after the other.
    const before = found?.python ?? Promise.resolve("");
    const python = before.catch(() => "").then(() => this.#install(file, this.#stop.signal));
    const entry = { digest: file.digest, python };
    this.#pythons.set(file.file, entry);
    python.catch(() => {
      if (this.#pythons.get(file.file) === entry) this.#pythons.delete(file.file);
    });
    return python;
  }

  /** Installs in the background, one file after the other, so that a first call need not wait. */
  installAhead(files: readonly OfferedFile[]): void {
    for (const file of files) {
      this.#last = this.#last.then(() => (this.#stop.signal.aborted ? "" : this.python(file))).catch(() => ""); // the first call tries again, and is told
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.allSettled([...this.#pythons.values()].map(({ python }) => python));
  }
}
