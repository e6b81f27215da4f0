// Who reaches the bus: without a key, with a made-up one, or as the third party that serves a provider.

import {
  type ConnectionOptions,
  connect,
  nkeyAuthenticator,
  nkeys,
  usernamePasswordAuthenticator,
} from "@nats-io/transport-node";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { connectOnce } from "#runtime/bus/credentials/connect.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { clientFor } from "../../../services/clients.ts";
import { asOperator } from "../../harness/callers.ts";
import { heard, listening, sending, sent } from "../../system/security/bus-attempts.ts";
import { type Attack, type Ground, tryAll } from "../attack.ts";

const madeUp = () => nkeyAuthenticator(nkeys.createUser().getSeed());

const logins: Record<string, () => Pick<ConnectionOptions, "authenticator" | "user" | "pass">> = {
  "no key": () => ({}),
  "a key that it made": () => ({ authenticator: madeUp() }),
  "a name and a password": () => ({ authenticator: usernamePasswordAuthenticator("admin", "admin") }),
  "the name of a service": () => ({ authenticator: usernamePasswordAuthenticator("tool-router") }),
};

async function asThirdParty({ natsUrl, providerSeed }: Ground) {
  const login = { name: "provider.stranger", seed: providerSeed };
  const connection = await connectOnce({ url: natsUrl, login, name: "attack" });
  return { connection, [Symbol.asyncDispose]: () => connection.close() };
}

export const bus: readonly Attack[] = [
  {
    name: "the bus without a key that it knows",
    requirement: "SEC-1",
    play: ({ natsUrl }) =>
      tryAll(Object.entries(logins), async ([what, login]) => {
        const options = { servers: natsUrl, reconnect: false, timeout: 5_000, ...login() };
        const connection = await connect(options).catch(() => undefined);
        await connection?.close();
        return connection === undefined ? undefined : `signed in to the bus with ${what}`;
      }),
  },
  {
    name: "everything on the bus with the key of one provider",
    requirement: "SEC-1",
    async play(ground) {
      await using party = await asThirdParty(ground);
      const { connection } = party;
      const tries = [
        ...heard.map((subject) => ({ what: `to listen to ${subject}`, play: () => listening(connection, subject) })),
        ...sent.map((subject) => ({ what: `to send to ${subject}`, play: () => sending(connection, subject) })),
      ];
      const oneByOne = 1; // the connection tells of refusals without saying whose they are
      return await tryAll(
        tries,
        async ({ what, play }) => (/violation/i.test(await play()) ? undefined : `was allowed ${what}`),
        oneByOne,
      );
    },
  },
  {
    name: "services of the suite, asked by a provider in an operator's name",
    requirement: "SEC-1",
    async play(ground) {
      await using party = await asThirdParty(ground);
      const through = <S extends Parameters<typeof clientFor>[1]>(service: S) => clientFor(party, service);
      const agent = { name: "evil", model: { provider: "scripted", model: "keeper.json" } };
      const tries: Record<string, () => Promise<unknown>> = {
        ApplyAgent: () => through(AgentService).applyAgent({ agent }, asOperator("olga")),
        GetRun: () => through(RunService).getRun({ runId: ground.runId }, asOperator("alice")),
        ListSpaces: () => through(SpaceService).listSpaces({}, asOperator("olga")),
      };
      return await tryAll(Object.entries(tries), async ([what, play]) => {
        const failure = await play().then(() => undefined, failureFromConnectError);
        return failure?.code === "permission_denied" ? undefined : `${what}: ${failure?.message ?? "was answered"}`;
      });
    },
  },
];
