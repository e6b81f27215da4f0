#!/usr/bin/env node
// What `toolbus` starts. It imports nothing before it knows that this Node can run it.

const OLDEST_NODE = 24;

if (Number.parseInt(process.versions.node, 10) >= OLDEST_NODE) await import("./main.ts");
else {
  const told = `toolbus: needs Node ${OLDEST_NODE} or later, and this is ${process.version} (${process.execPath}).`;
  console.error(
    `${told}\nStart it by \`npx toolbus\`, which takes the Node that was installed with it, or install a later one.`,
  );
  process.exitCode = 1;
}

export {};
