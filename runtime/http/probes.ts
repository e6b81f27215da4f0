import { createServer } from "node:http";
import { listen } from "./listen.ts";

/**
 * Answers whoever supervises this process, over plain HTTP on all addresses: `/livez` with 200 as long as it turns, `/readyz` with 200
 * or 503. It tells nothing else, and asks for no key. Throws `failed_precondition` when the port is taken.
 */
export async function openProbes(port: number, isReady: () => boolean): Promise<AsyncDisposable> {
  const server = createServer(({ url }, response) => {
    const answer = (status: number, text: string) => {
      response.writeHead(status, { "content-type": "text/plain", connection: "close" });
      response.end(`${text}\n`);
    };
    if (url === "/livez") answer(200, "ok");
    else if (url === "/readyz") answer(isReady() ? 200 : 503, isReady() ? "ok" : "not ready");
    else answer(404, "there is /livez, and /readyz");
  });
  await listen(server, "0.0.0.0", port);
  server.unref();
  return { [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())) };
}
