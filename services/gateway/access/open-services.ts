import type { DescService } from "@bufbuild/protobuf";
import * as v1 from "#gen/grpc/reflection/v1/reflection_pb.ts";
import * as v1alpha from "#gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { Health } from "#gen/health/v1/health_pb.ts";

/** Health and reflection are open to strangers: probes and tools ask them before they have a key. */
const openServices = new Set<DescService>([Health, v1.ServerReflection, v1alpha.ServerReflection]);

/** What a stranger may send: a name, and nothing packed. */
export const openServiceOptions = { readMaxBytes: 4 * 1024, acceptCompression: [] };

export function isOpen(service: DescService): boolean {
  return openServices.has(service);
}
