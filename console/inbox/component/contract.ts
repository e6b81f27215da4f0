// What a component of a project is to the console: docs/console-components.md tells it to those who write one.

/** A question as its component is given it. */
export interface ComponentQuestion {
  readonly callId: string;
  /** The tool's reference, by which the file is named. */
  readonly tool: string;
  readonly agent: string;
  /** What is asked, in words; empty where the arguments say it all. */
  readonly message: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** JSON Schema of the answer; undefined where every value will do. */
  readonly schema: unknown;
  /** Gives whether the suite took the value; if not, what it said stands below the component. */
  answer(value: unknown): Promise<boolean>;
  /** Likewise. */
  decline(reason?: string): Promise<boolean>;
}

/**
 * The default export of a module: draws into the element. What it gives, or promises, is called, if it is a function,
 * when the question is shown no longer.
 */
export type Component = (question: ComponentQuestion, element: HTMLElement) => unknown;
