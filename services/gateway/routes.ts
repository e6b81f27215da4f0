import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, Transport } from "@connectrpc/connect";
import * as v1 from "#gen/grpc/reflection/v1/reflection_pb.ts";
import * as v1alpha from "#gen/grpc/reflection/v1alpha/reflection_pb.ts";
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "#gen/health/v1/health_pb.ts";
import { processOf, publicServices } from "../processes.ts";
import { openServiceOptions } from "./access/open-services.ts";
import type { Health } from "./health.ts";
import { createProxy } from "./proxy.ts";
import type { AnswerReflection } from "./reflection.ts";

export interface GatewayRoutes {
  transportOf: (process: string) => Transport;
  health: Health;
  reflection: AnswerReflection;
  stopping: AbortSignal;
}

/** Every service of the contract by its descriptor, and what gRPC's tools expect beside them. */
export function createRoutes({ transportOf, health, reflection, stopping }: GatewayRoutes) {
  return (router: ConnectRouter): void => {
    for (const service of publicServices)
      router.service(service, createProxy(service, transportOf(processOf(service)), stopping));
    router.service(HealthService, healthRoutes(health), openServiceOptions);
    const alpha = (request: v1alpha.ServerReflectionRequest) => alphaFromV1(reflection(v1FromAlpha(request)));
    router.service(v1.ServerReflection, reflectionRoutes(reflection), openServiceOptions);
    router.service(v1alpha.ServerReflection, reflectionRoutes(alpha), openServiceOptions);
  };
}

function reflectionRoutes<Q, A>(answer: (request: Q) => A) {
  return {
    async *serverReflectionInfo(requests: AsyncIterable<Q>) {
      for await (const request of requests) yield answer(request);
    },
  };
}

function healthRoutes(health: Health) {
  return {
    async check({ service }: { service: string }) {
      return { status: statusFrom(await health.check(service)) };
    },
    async list() {
      const entries = [...(await health.list())].map(([name, up]) => [name, { status: statusFrom(up) }] as const);
      return { statuses: Object.fromEntries(entries) };
    },
    async *watch({ service }: { service: string }, { signal }: HandlerContext) {
      for await (const up of health.watch(service, signal)) yield { status: statusFrom(up) };
    },
  };
}

function statusFrom(isUp: boolean | undefined): ServingStatus {
  if (isUp === undefined) return ServingStatus.SERVICE_UNKNOWN;
  return isUp ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
}

// The two versions of reflection differ in name only; the bytes are the same.

function v1FromAlpha(request: v1alpha.ServerReflectionRequest): v1.ServerReflectionRequest {
  return fromBinary(v1.ServerReflectionRequestSchema, toBinary(v1alpha.ServerReflectionRequestSchema, request));
}

function alphaFromV1(response: MessageInitShape<typeof v1.ServerReflectionResponseSchema>) {
  const bytes = toBinary(v1.ServerReflectionResponseSchema, create(v1.ServerReflectionResponseSchema, response));
  return fromBinary(v1alpha.ServerReflectionResponseSchema, bytes);
}
