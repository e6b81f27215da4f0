import type { DescMethod } from "@bufbuild/protobuf";
import type { CallMux } from "./mux.ts";

const ROOT = "toolbus.rpc";

/** Where a request for a method goes; the instances of the service listen there as one queue group. */
export function subjectOfMethod(service: string, method: DescMethod): string {
  return `${ROOT}.${service}.${method.parent.typeName}.${method.name}`;
}

/** Where a cancel goes whose sender does not know which instance has the call; every instance listens. */
export function cancelSubjectOf(service: string): string {
  return `${ROOT}.${service}.cancel`;
}

/** Cancels a call of which nothing has been heard: any instance may have it. */
export function cancelEverywhere(mux: CallMux, cancelSubject: string, inbox: string): void {
  mux.publish(cancelSubject, Buffer.from(inbox));
}

/** The name of a micro service may hold no dots: the instances of a service have the name of their service. */
export function microNameOf(service: string): string {
  return service.split(".", 1)[0] ?? service;
}

/** The name of a method among a micro service's endpoints, which may hold no dots. */
export function endpointNameOf(method: DescMethod): string {
  return `${method.parent.typeName}.${method.name}`.replaceAll(".", "_");
}

/** What interceptors and handlers see as the address of a call. */
export function urlOfMethod(service: string, method: DescMethod): string {
  return `nats://${service}/${method.parent.typeName}/${method.name}`;
}
