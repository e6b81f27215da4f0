import { type ServiceEvent, type ServiceName, ServicesProcess } from "./services-process.ts";

export interface ServicesOptions {
  env: NodeJS.ProcessEnv;
  natsUrl: Promise<string>;
  /** Of the first gateway; 0 takes a free one. */
  port: number;
  restart: boolean;
  program: string | undefined;
  onEvent: (event: ServiceEvent) => void;
}

/** A service of a suite. */
export interface SuiteService extends ServiceName {
  /** Of the process that it runs in at the moment; undefined while none does. */
  readonly pid: number | undefined;
}

/** The services of a suite, in one process or several; closing ends all of them. */
export class Services implements AsyncDisposable {
  readonly all: SuiteService[] = [];
  /** Where the gateway that was ready first listens. */
  readonly gatewayUrl: Promise<string>;
  readonly #options: ServicesOptions;
  readonly #processes: ServicesProcess[] = [];
  readonly #firstUrl = Promise.withResolvers<string>();
  readonly #counts = new Map<string, number>();

  constructor(options: ServicesOptions) {
    this.#options = options;
    this.gatewayUrl = this.#firstUrl.promise;
  }

  /** Starts one more process, with one more instance of each of the services. Resolves when they are ready. */
  async launch(names: readonly string[]): Promise<SuiteService[]> {
    const hasFirstGateway = names.includes("gateway") && !this.#counts.has("gateway");
    const instances = names.map((service) => ({ service, instance: this.#instanceOf(service) }));
    const port = String(hasFirstGateway ? this.#options.port : 0);
    const env: NodeJS.ProcessEnv = {
      ...this.#options.env,
      ...(names.includes("gateway") && { TOOLBUS_HTTP_PORT: port }),
    };
    const onEvent = (event: ServiceEvent) => {
      if (event.kind === "ready" && event.service === "gateway")
        this.#gatewayIsReady(String(event.announcement.url), env);
      this.#options.onEvent(event);
    };
    const { natsUrl, restart, program } = this.#options;
    const process = new ServicesProcess({ services: instances, env, natsUrl, onEvent, restart, program });
    this.#processes.push(process);
    const services = instances.map((name) => ({
      ...name,
      get pid() {
        return process.pid;
      },
    }));
    this.all.push(...services);
    await process.ready;
    return services;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process[Symbol.asyncDispose]()));
  }

  #instanceOf(service: string): string {
    const count = (this.#counts.get(service) ?? 0) + 1;
    this.#counts.set(service, count);
    return `${service}-${count}`;
  }

  /** A free port is taken once: whoever was told where the gateway is finds it there when it has been started again. */
  #gatewayIsReady(url: string, env: NodeJS.ProcessEnv): void {
    if (env.TOOLBUS_HTTP_PORT === "0") env.TOOLBUS_HTTP_PORT = new URL(url).port;
    this.#firstUrl.resolve(url);
  }
}
