# One image for every service: the words after its name are those of the command `toolbus`, like `serve gateway`.
FROM node:24-bookworm-slim

# bubblewrap confines tools where the container may make namespaces, Python runs workers, uv installs what they depend on; tini is
# process 1, and reaps what workers leave behind.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap ca-certificates python3 python3-pip tini \
 && rm -rf /var/lib/apt/lists/*
COPY runtime/bus/nats-server/find/uv.txt /tmp/
RUN python3 -m pip install --break-system-packages --no-cache-dir --require-hashes --no-deps -r /tmp/uv.txt

WORKDIR /toolbus
COPY package.json package-lock.json .npmrc ./
# With the development packages, as the MCP servers of the examples are among them.
RUN npm ci
COPY gen/console gen/console
COPY gen/es gen/es
COPY gen/jsonschema gen/jsonschema
COPY runtime runtime
COPY services services
COPY cli cli
COPY sdk sdk
COPY examples examples

# For compiled code; the environments of workers go to the home of the user.
RUN mkdir .toolbus && chown node:node .toolbus
USER node
# The PATH finds the MCP servers of the examples.
ENV NODE_ENV=production \
    NODE_COMPILE_CACHE=/toolbus/.toolbus/compile-cache \
    PATH=/toolbus/node_modules/.bin:$PATH
ENTRYPOINT ["tini", "--", "node", "cli/main.ts"]
CMD ["--help"]
