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
}

const DEFAULT_PAGE_SIZE = 100;

export function sizeOfPage(pageSize: number): number {
  return pageSize || DEFAULT_PAGE_SIZE;
}

/** A page of a list that is at hand, in the order of its places. What comes or goes between two pages moves nothing else. */
export function pageOf<T>(list: ListName, listed: Listed<T>, { pageSize, pageToken }: PageRequest): Page<T> {
  const after = placeFromToken(list, pageToken);
  const behind = placed(listed)
    .filter(({ place }) => place > after)
    .sort((one, other) => (one.place < other.place ? -1 : 1));
  const size = sizeOfPage(pageSize);
  const place = behind.length > size ? behind[size - 1]!.place : "";
  return { items: behind.slice(0, size).map(({ element }) => element), nextPageToken: tokenFromPlace(list, place) };
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
