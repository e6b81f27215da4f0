/** Where the page of the cases is served, which the gateway has to allow. */
export const PAGE_ORIGIN = "http://127.0.0.1:7491";
