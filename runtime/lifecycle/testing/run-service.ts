// A tiny service whose behaviour a test chooses by a word in `BEHAVIOUR`.
import { readEnvironment } from "../../config/environment.ts";
import { serviceConfigFromReader } from "../../config/service-config.ts";
import { Failure } from "../../failure/failure.ts";
import { delay } from "../../time/delay.ts";
import { runService } from "../run-service.ts";

let opened = 0;

await runService({
  name: "tiny",
  drainTimeoutMs: 500,
  readConfig(env) {
    const reader = readEnvironment(env);
    const config = {
      ...serviceConfigFromReader(reader),
      behaviour: reader.string("BEHAVIOUR", { meaning: "What the test wants." }),
    };
    reader.finish();
    return config;
  },
  async openService({ behaviour }, { logger, signal }) {
    if (behaviour === "fails-to-open")
      throw new Failure("failed_precondition", "no bus at nats://127.0.0.1:1", { reason: "INVALID_REQUEST" });
    if (behaviour === "loses-the-bus" && opened++ < 2)
      throw new Failure("unavailable", "the connection to NATS was lost", { reason: "BUS_UNAVAILABLE" });
    if (behaviour === "opens-for-ever") {
      logger.info("opening");
      await delay(600_000, signal);
    }
    const heartbeat = setInterval(() => {}, 1_000);
    if (behaviour === "rejects") setImmediate(() => void Promise.reject(new Error("nobody caught me")));
    return {
      announcement: { url: "http://127.0.0.1:1" },
      async [Symbol.asyncDispose]() {
        logger.info("draining");
        if (behaviour === "drains-for-ever") await delay(600_000);
        if (behaviour === "drains-slowly") await delay(100);
        if (behaviour === "fails-to-drain") throw new Error("stuck");
        if (behaviour !== "leaves-a-timer") clearInterval(heartbeat);
        logger.info("drained");
      },
    };
  },
});
