import type { DescService } from "@bufbuild/protobuf";
import { refuse } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";

/** Whether an instance of a bus service answers. */
export type IsServing = (process: string, signal: AbortSignal) => Promise<boolean>;

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
  const look = async (service: string, signal: AbortSignal) =>
    stores() && (service === "" || (await isServing(processOf({ typeName: service }), signal)));

  return {
    /** The empty name asks for the gateway itself. Throws `not_found` for a service that is not of the contract. */
    async check(service: string, signal: AbortSignal): Promise<boolean> {
      if (!names.has(service)) refuse("not_found", `there is no service "${service}"`, { reason: "SERVICE_NOT_FOUND" });
      return look(service, signal);
    },
    async list(signal: AbortSignal): Promise<Map<string, boolean>> {
      const processes = new Map<string, Promise<boolean>>();
      for (const process of new Set(services.map(processOf))) processes.set(process, isServing(process, signal));
      const entries = services.map(
        async (service) =>
          [service.typeName, stores() && ((await processes.get(processOf(service))) ?? false)] as const,
      );
      return new Map([["", stores()], ...(await Promise.all(entries))]);
    },
    /** How it stands now, then each change. A service that nobody knows is `undefined`. */
    async *watch(service: string, signal: AbortSignal): AsyncGenerator<boolean | undefined> {
      if (!names.has(service)) yield undefined;
      let last: boolean | undefined;
      while (!signal.aborted) {
        const current = names.has(service) ? await look(service, signal) : undefined;
        if (current !== last) yield current;
        last = current;
        await delay(intervalMs, signal);
      }
    },
  };
}
