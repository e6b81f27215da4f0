// `npm pack` in the clone would pack its sources, which do not run below node_modules.

console.error("npm run pack packs what is compiled, and prints where it is; npm run release proves it, too.");
process.exitCode = 1;
