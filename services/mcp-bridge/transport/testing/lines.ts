/** A third party's transport, as a module that an operator names: one JSON message a line, over a TCP connection. */

import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { transportFromChannel } from "../channel.ts";
import type { TransportModule } from "../module.ts";

export const transport: TransportModule = {
  name: "lines",
  schemes: ["lines"],
  async open({ transport: reached }) {
    if (reached.case !== "custom") throw new Error("this transport needs a url");
    const { hostname: host, port } = new URL(reached.value.url);
    const socket = connect({ host, port: Number(port) });
    await once(socket, "connect");
    const channel = {
      send: async (text: string) => void socket.write(`${text}\n`),
      receive: () => createInterface({ input: socket }),
      close: async () => void socket.destroy(),
    };
    return { transport: transportFromChannel(channel) };
  },
};
