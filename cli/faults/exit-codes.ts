/** What a script can rely on. */
export const exitCodes = {
  success: 0,
  /** A run that did not complete, a tool that answered with an error, a service that failed. */
  failure: 1,
  /** A command, an option or an argument that does not fit. */
  usage: 2,
  /** No gateway answers at the address. */
  unreachable: 3,
  /** Ended by Ctrl-C, as shells say it. */
  interrupted: 130,
} as const;
