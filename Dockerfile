# Ludus in a container, on the CPU or on a GPU (which needs NVIDIA's container toolkit):
#   docker build --tag ludus .
#   docker run --rm --volume ludus-runs:/home/ludus/runs ludus train brawl --preset quick
#   docker run --rm --gpus all --volume ludus-runs:/home/ludus/runs ludus train brawl --preset competition
# Extras: docker build --build-arg EXTRAS=window,tensorboard --tag ludus .

FROM python:3.12-slim AS base
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN useradd --create-home --shell /bin/bash ludus

# For those who change Ludus: what the tests need beside Python. The checkout is mounted, and `make` installs the rest.
FROM base AS dev
RUN apt-get update \
  && apt-get install --yes --no-install-recommends make git xvfb xdotool chromium libegl1 libegl-mesa0 libosmesa6 \
    libfaketime libgl1-mesa-dri lincity-ng micropolis nodejs opencity \
  && rm -rf /var/lib/apt/lists/*
USER ludus

# The last stage is what `docker build` makes unless it is told otherwise.
FROM base AS ludus
ARG EXTRAS=""
COPY pyproject.toml README.md LICENSE /tmp/ludus/
COPY src /tmp/ludus/src
RUN pip install "/tmp/ludus${EXTRAS:+[$EXTRAS]}" && rm -rf /tmp/ludus
USER ludus
WORKDIR /home/ludus
# A volume takes the owner of the folder that it is mounted on.
RUN mkdir runs
VOLUME /home/ludus/runs
ENTRYPOINT ["ludus"]
CMD ["--help"]
