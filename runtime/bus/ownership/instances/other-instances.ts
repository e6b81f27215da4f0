import { failureFromConnectError } from "../../../failure/connect.ts";
import { messageFromUnknown } from "../../../failure/failure.ts";
import { delay } from "../../../time/delay.ts";
import type { Instances } from "./instances.ts";

const LOOK_AGAIN_MS = 2_000;

interface OtherInstancesOptions<Part> {
  /** This one. */
  readonly instance: string;
  readonly instances: Instances;
  /** What another one has itself. */
  readonly partOf: (instance: string) => Part;
  readonly logger: { warn(message: string): void };
}

/** The other instances of a service, as one of them sees them, and what each has itself. */
export class OtherInstances<Part> {
  readonly #options: OtherInstancesOptions<Part>;

  constructor(options: OtherInstancesOptions<Part>) {
    this.#options = options;
  }

  /** Those that are there; without a signal those that were found so far. */
  async names(signal?: AbortSignal): Promise<string[]> {
    const { instance, instances } = this.#options;
    const all = signal === undefined ? instances.known() : await instances.list(signal);
    return all.filter((other) => other !== instance);
  }

  async askAll<R>(signal: AbortSignal, ask: (part: Part) => Promise<R>): Promise<R[]> {
    return this.ask(await this.names(signal), ask);
  }

  /** One that does not answer is left out. */
  async ask<R>(names: readonly string[], ask: (part: Part) => Promise<R>): Promise<R[]> {
    const { instances, partOf, logger } = this.#options;
    const answers = await Promise.allSettled(names.map((name) => ask(partOf(name))));
    return answers.flatMap((answer, index) => {
      if (answer.status === "fulfilled") return [answer.value];
      instances.forget(names[index] ?? "");
      if (failureFromConnectError(answer.reason).reason === "SERVICE_UNAVAILABLE") return []; // it has stopped
      logger.warn(`the instance ${names[index]} does not answer: ${messageFromUnknown(answer.reason)}`);
      return [];
    });
  }

  /** Also those that come later, and again who comes back. Resolves when all that are there have called `begun`, or after two seconds. */
  async follow(signal: AbortSignal, follow: (part: Part, begun: () => void) => Promise<void>): Promise<void> {
    const { instances, partOf } = this.#options;
    const followed = new Set<string>();
    const begin = (name: string) => {
      followed.add(name);
      const forget = () => {
        followed.delete(name);
        if (!signal.aborted) instances.forget(name); // what is remembered is found again
      };
      return new Promise<void>((begun) => void follow(partOf(name), begun).then(forget, forget));
    };
    const look = async () => {
      const found = await this.names(signal).catch(() => []); // asked again soon
      await Promise.all(found.filter((name) => !followed.has(name)).map(begin));
    };
    const lookAgain = async () => {
      for (;;) {
        await delay(LOOK_AGAIN_MS, signal);
        void look();
      }
    };
    const first = look();
    lookAgain().catch(() => {}); // the signal ends it
    await Promise.race([first, delay(LOOK_AGAIN_MS, signal).catch(() => {})]); // of who listens to the signal
  }
}
