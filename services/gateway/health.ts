import type { DescService } from "@bufbuild/protobuf";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";

/** Whether an instance of a bus service answers. */
export type IsServing = (process: string) => Promise<boolean>;

export interface HealthOptions {
  services: readonly DescService[];
  processOf: (service: Pick<DescService, "typeName">) => string;
  isServing: IsServing;
  /** Why nothing can be stored: then most calls are refused, whoever is there. */
  storageFault: () => string | undefined;
  /** Time between looks of a watch, in milliseconds. */
  intervalMs: number;
}

export type Health = ReturnType<typeof createHealth>;

/** Health of the services behind the gateway, as gRPC's health protocol asks for it. */
export function createHealth({ services, processOf, isServing, storageFault, intervalMs }: HealthOptions) {
  const stores = () => storageFault() === undefined;
  const names = new Set(["", ...services.map((service) => service.typeName)]);
  /** SEC-5: all who ask at once, strangers too, are answered by one question. */
  const asked = new Map<string, Promise<boolean>>();
  const ask = (process: string) =>
    getOrInsertComputed(asked, process, () => isServing(process).finally(() => asked.delete(process)));
  const look = async (service: string) => stores() && (service === "" || (await ask(processOf({ typeName: service }))));

  return {
    /** The empty name asks for the gateway itself. Throws `not_found` for a service that is not of the contract. */
    async check(service: string): Promise<boolean> {
      if (!names.has(service)) refuse("not_found", `there is no service "${service}"`, { reason: "SERVICE_NOT_FOUND" });
      return look(service);
    },
    async list(): Promise<Map<string, boolean>> {
      const entries = services.map(async ({ typeName }) => [typeName, await look(typeName)] as const);
      return new Map([["", stores()], ...(await Promise.all(entries))]);
    },
    /** How it stands now, then each change. A service that nobody knows is `undefined`. */
    async *watch(service: string, signal: AbortSignal): AsyncGenerator<boolean | undefined> {
      if (!names.has(service)) yield undefined;
      let last: boolean | undefined;
      while (!signal.aborted) {
        const current = names.has(service) ? await look(service) : undefined;
        if (current !== last) yield current;
        last = current;
        await delay(intervalMs - (Date.now() % intervalMs), signal); // at the same time as all others
      }
    },
  };
}
