# One image for every service: `toolbus serve <service>` decides which one a container is.
FROM node:24-bookworm-slim

# Python runs workers (and installs uv, which installs what they depend on); tini reaps what workers leave behind.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-pip tini ca-certificates \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m pip install --break-system-packages --no-cache-dir "uv==0.13.*"

WORKDIR /toolbus
COPY package.json package-lock.json .npmrc ./
# With the development packages, as the MCP servers of the examples are among them.
RUN npm ci
COPY gen/es gen/es
COPY runtime runtime
COPY services services
COPY cli cli
COPY sdk sdk
COPY examples examples

# Workers and their environments are written here.
RUN mkdir .toolbus && chown node:node .toolbus
USER node
ENV NODE_ENV=production
ENTRYPOINT ["tini", "-g", "--", "node", "cli/main.ts"]
CMD ["--help"]
