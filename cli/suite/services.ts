import { type ServiceEvent, ServiceProcess } from "./service-process.ts";

export interface ServicesOptions {
  env: NodeJS.ProcessEnv;
  /** Of the first gateway; 0 takes a free one. */
  port: number;
  restart: boolean;
  onEvent: (event: ServiceEvent) => void;
}

/** The services of a suite, each in a process of its own; closing ends all of them. */
export class Services implements AsyncDisposable {
  readonly all: ServiceProcess[] = [];
  /** Where the gateway that was ready first listens. */
  readonly gatewayUrl: Promise<string>;
  readonly #options: ServicesOptions;
  readonly #firstUrl = Promise.withResolvers<string>();
  readonly #counts = new Map<string, number>();

  constructor(options: ServicesOptions) {
    this.#options = options;
    this.gatewayUrl = this.#firstUrl.promise;
  }

  /** Starts one more instance of a service. */
  launch(room: string): ServiceProcess {
    const count = (this.#counts.get(room) ?? 0) + 1;
    this.#counts.set(room, count);
    const instance = `${room}-${count}`;
    const env: NodeJS.ProcessEnv = { ...this.#options.env, TOOLBUS_INSTANCE: instance };
    if (room === "gateway") env.TOOLBUS_HTTP_PORT = String(count === 1 ? this.#options.port : 0);
    const onEvent = (event: ServiceEvent) => {
      if (event.kind === "ready" && room === "gateway") this.#gatewayIsReady(String(event.announcement.url), env);
      this.#options.onEvent(event);
    };
    const service = new ServiceProcess({ room, instance, env, onEvent, restart: this.#options.restart });
    this.all.push(service);
    return service;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all.map((service) => service[Symbol.asyncDispose]()));
  }

  /** A free port is taken once: whoever was told where the gateway is finds it there when it has been started again. */
  #gatewayIsReady(url: string, env: NodeJS.ProcessEnv): void {
    if (env.TOOLBUS_HTTP_PORT === "0") env.TOOLBUS_HTTP_PORT = new URL(url).port;
    this.#firstUrl.resolve(url);
  }
}
