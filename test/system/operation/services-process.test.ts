import { expect, test } from "vitest";
import { type ServiceEvent, ServicesProcess } from "../../../cli/suite/services-process.ts";

function open(service: string, env: NodeJS.ProcessEnv) {
  const events: ServiceEvent[] = [];
  const process = new ServicesProcess({
    services: [{ service, instance: `${service}-1` }],
    env,
    natsUrl: Promise.resolve("nats://127.0.0.1:1"),
    onEvent: (event) => events.push(event),
    restart: false,
  });
  return { process, events };
}

test("BUS-6 a process that cannot be told its settings is ended, with the reason", async () => {
  let reads = 0;
  const env = Object.defineProperty({}, "TOOLBUS_LOG_LEVEL", {
    enumerable: true,
    get() {
      reads += 1; // the first time for what a process is started with
      if (reads > 1) throw new Error("nobody may read it");
      return "warn";
    },
  });
  await using opened = open("spaces", env).process;
  await expect(opened.ready).rejects.toMatchObject({
    code: "unavailable",
    message: "spaces cannot be told its settings: nobody may read it",
  });
});

test("BUS-6 a service that there is none of says so itself", async () => {
  await using opened = open("nonesuch", {}).process;
  await expect(opened.ready).rejects.toMatchObject({
    message: expect.stringContaining(`there is no service "nonesuch"`),
  });
});
