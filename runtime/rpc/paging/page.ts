import { type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { type ListName, placeFromToken, tokenFromPlace } from "./page-token.ts";

/** What every list is asked for; a page size of 0 means 100. */
export interface PageRequest {
  pageSize: number;
  pageToken: string;
}

export interface Page<T> {
  items: T[];
  nextPageToken: string;
}

/** What a list consists of, and where each element stands in its order; those at one place are told apart by their number. */
export interface Listed<T> {
  elements: Iterable<T>;
  placeOf: (element: T) => string;
  /** Of elements that may be large: asked once of each, in their order, whether the page takes it (`openPage`). */
  takes?: (element: T) => boolean;
}

const DEFAULT_PAGE_SIZE = 100;
/** Clients of gRPC refuse an answer of more than 4 MiB, unless they are told otherwise. */
const MOST_BYTES = 3 * 1_024 * 1_024;

export function sizeOfPage(pageSize: number): number {
  return pageSize || DEFAULT_PAGE_SIZE;
}

/** Takes one message after the other into a page of so many bytes, or one message of any size, and says of each whether it did. */
export function openPage<D extends DescMessage>(schema: D): (message: MessageShape<D>) => boolean {
  let bytes = 0;
  return (message) => {
    const before = bytes;
    bytes += toBinary(schema, message).length;
    return before === 0 || bytes <= MOST_BYTES;
  };
}

/** A page of a list that is at hand, in the order of its places. What comes or goes between two pages moves nothing else. */
export function pageOf<T>(list: ListName, listed: Listed<T>, { pageSize, pageToken }: PageRequest): Page<T> {
  const after = placeFromToken(list, pageToken);
  const behind = placed(listed)
    .filter(({ place }) => place > after)
    .sort((one, other) => (one.place < other.place ? -1 : 1));
  const most = behind.slice(0, sizeOfPage(pageSize));
  const end = listed.takes ? most.findIndex(({ element }) => !listed.takes!(element)) : -1;
  const page = end === -1 ? most : most.slice(0, end);
  const place = behind.length > page.length ? (page.at(-1)?.place ?? "") : "";
  return { items: page.map(({ element }) => element), nextPageToken: tokenFromPlace(list, place) };
}

function placed<T>({ elements, placeOf }: Listed<T>): { element: T; place: string }[] {
  const countsByPlace = new Map<string, number>();
  return Array.from(elements, (element) => {
    const place = placeOf(element);
    const count = countsByPlace.get(place) ?? 0;
    countsByPlace.set(place, count + 1);
    return { element, place: count === 0 ? place : `${place}\0${String(count).padStart(9, "0")}` };
  });
}

/** Numbers as places: in their own order, up to the greatest of 64 bits. */
export function placeOfNumber(number: bigint): string {
  return String(number).padStart(20, "0");
}
