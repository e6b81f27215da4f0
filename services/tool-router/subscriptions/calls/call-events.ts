import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { CallToolResponseSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { largestMessageBytes } from "#runtime/bus/declarations/declarations.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import type { CallEvent } from "../../calls/in-flight.ts";

/* Progress and logs of a call, for the routers whose clients wait for it while another one executes it. Some may be lost. */

const subjectOf = (callId: string) => `toolbus.call.event.${callId}`;

export function publishEvent(bus: Bus, callId: string, event: CallEvent): void {
  if (event.case !== "progress" && event.case !== "log") return; // questions and the result are in records
  const bytes = toBinary(CallToolResponseSchema, create(CallToolResponseSchema, { event }));
  if (bytes.length < largestMessageBytes && bus.link.isUp) bus.connection.publish(subjectOf(callId), bytes);
}

export function followEvents(bus: Bus, callId: string, onEvent: (event: CallEvent) => void): Disposable {
  const subscription = listen(bus, subjectOf(callId), ({ data }) => {
    const { event } = fromBinary(CallToolResponseSchema, data);
    if (event.case === "progress" || event.case === "log") onEvent(event);
  });
  return { [Symbol.dispose]: () => subscription.unsubscribe() };
}
