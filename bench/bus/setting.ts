import type { Latencies, Load } from "../measuring/latencies.ts";
/** What the processes of the measurement agree on. */
export const SERVICE = "bench";
export const RAW_SUBJECT = "toolbus.bench.raw";
export const UNARY_BYTES = 512;
export const STREAM_BYTES = 64 * 1024;

export type Way = "raw" | "bus" | "h2";

/** What the client process is asked to do. */
export type Order = ({ kind: "unary"; way: Way } & Load) | { kind: "stream"; durationMs: number };

export type Report = ({ kind: "unary" } & Latencies) | { kind: "stream"; megabytesPerSecond: number };
