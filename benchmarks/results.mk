# What measures the tables of docs/ again: `make results-NAME` stores the raw data in docs/data and rewrites the tables.
# `GPU` needs one; `long` trains several agents.

.PHONY: results results-tables

TABLES := $(BIN)/python -m benchmarks.tables
DATA := docs/data
PEERS := pufferlib rlgym loco-mujoco

results: ## this list
	@grep -hE '^results[a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /make \1  -  /'

results-tables: $(READY) ## writes all tables from the data that is there
	$(TABLES)

results-agents: $(READY) ## src/ludus/agents/*.md: the results of the shipped agents
	$(BIN)/python benchmarks/shipped_agents.py measure

results-brawl-bots: $(READY) ## docs/worlds/brawl.md: how the bots play
	PYTHONPATH=. $(BIN)/python benchmarks/brawl_bots.py --matches 200
	$(TABLES) brawl-bots

results-rocket-parity: $(READY) ## docs/research/rocket-physics.md: golden values of car soccer beside ours
	PYTHONPATH=. $(BIN)/python benchmarks/rocket_parity.py
	$(TABLES) rocket-parity

results-rocket-oracle: $(READY) ## docs/research/rocket-physics.md: random states beside RocketSim; needs the extra rocket-oracle
	PYTHONPATH=. $(BIN)/python benchmarks/rocket_oracle.py
	$(TABLES) rocket-oracle

results-rocket-bots: $(READY) ## docs/worlds/rocket.md: how the scripted players play
	PYTHONPATH=. $(BIN)/python benchmarks/rocket_bots.py --mode 1v1 --matches 40
	PYTHONPATH=. $(BIN)/python benchmarks/rocket_bots.py --mode 2v2 --matches 20
	$(TABLES) rocket-bots

results-rocket-quick: $(READY) ## docs/research/rocket.md: the preset quick, three seeds; long
	$(BIN)/python benchmarks/preset_results.py --world rocket --preset quick --seeds 3 --matches 100 --out $(DATA)/rocket_quick_cpu.json
	$(TABLES) rocket-quick

results-rocket-stages: $(READY) ## docs/research/rocket.md: the three stages and every mode; GPU
	$(BIN)/python benchmarks/rocket_stages.py --device cuda --out $(DATA)/rocket_stages.json --picture docs/images/rocket-ratings.png
	$(TABLES) rocket-stages

results-rocket-search: $(READY) ## docs/research/rocket.md: what was compared for the presets; GPU, long
	$(BIN)/python benchmarks/rocket_search.py --device cuda
	$(TABLES) rocket-search

results-brawl-weapons: $(READY) ## docs/worlds/brawl.md: balance of the weapons
	PYTHONPATH=. $(BIN)/python benchmarks/brawl_weapons.py --matches 192
	$(TABLES) brawl-weapons

results-brawl-sim: $(READY) ## docs/worlds/brawl.md: speed of the simulator on the CPU
	$(BIN)/python benchmarks/speed.py sim --device cpu
	$(TABLES) brawl-sim

results-brawl-sim-cuda: $(READY) ## the same; GPU
	$(BIN)/python benchmarks/speed.py sim --device cuda
	$(TABLES) brawl-sim

results-brawl-quick: $(READY) ## docs/research/brawl.md: the preset quick, three seeds; long
	$(BIN)/python benchmarks/preset_results.py --world brawl --preset quick --seeds 3 --out $(DATA)/brawl_quick_cpu.json
	$(TABLES) brawl-quick

results-brawl-recipe: $(READY) ## docs/research/brawl.md: what changes to the recipe of quick are worth; long
	$(BIN)/python benchmarks/quick_recipe.py
	$(BIN)/python benchmarks/quick_recipe.py epochs --seeds 3 --env-steps 6500000 --evaluations 4
	$(BIN)/python benchmarks/quick_recipe.py draws --seeds 3 --env-steps 6500000 --evaluations 3
	$(BIN)/python benchmarks/quick_recipe.py small-entropy --seeds 3 --env-steps 14000000 --evaluations 3 --matches 60
	$(BIN)/python benchmarks/quick_recipe.py small-closing --first-seed 2 --env-steps 14000000 --evaluations 3 --matches 60
	for recipe in "draws 7500000" "draws-hard 6500000" "draws-rate 6500000" "draws-long 6500000" "draws-small 9000000" \
	  "draws-anneal 6500000" "draws-96 9000000" "draws-small-anneal 14000000"; do \
	  set -- $$recipe; $(BIN)/python benchmarks/quick_recipe.py $$1 --seeds 3 --env-steps $$2 --evaluations 3 --matches 60 \
	    --out $(DATA)/quick_recipe_x86.json || exit 1; done
	$(TABLES) brawl-recipe

results-brawl-curriculum: $(READY) ## docs/research/brawl.md: the preset curriculum; long
	$(BIN)/python benchmarks/preset_results.py --world brawl --preset curriculum --seeds 1 --out $(DATA)/brawl_curriculum.json
	$(TABLES) brawl-curriculum

results-brawl-competition: $(READY) ## docs/research/brawl.md: the preset competition, three seeds; GPU, long
	$(BIN)/python benchmarks/preset_results.py --world brawl --preset competition --seeds 3 --matches 300 --device cuda --out $(DATA)/brawl_competition.json
	$(TABLES) brawl-competition

results-brawl-candidates: $(READY) ## docs/research/brawl.md: networks and rewards tried for competition; GPU, long
	PYTHONPATH=. $(BIN)/python benchmarks/brawl_candidates.py
	$(TABLES) brawl-candidates

results-unknown-opponents: $(READY) ## docs/results/brawl.md: quick and competition against bots that they never met; GPU, long
	rm -rf runs/unknown
	$(BIN)/python benchmarks/unknown_opponents.py --preset quick --variants preset --device cpu --lanes 1 --out $(DATA)/unknown_opponents.json
	$(BIN)/python benchmarks/unknown_opponents.py --preset competition --variants preset --lanes 1 --out $(DATA)/unknown_opponents.json
	$(TABLES) unknown-opponents

results-brawl-armed: $(READY) ## docs/research/brawl.md: every style, and pay for weapons; three seeds; GPU, long
	$(BIN)/python benchmarks/preset_results.py --world brawl --preset benchmarks/presets/armed.yaml --seeds 3 --matches 300 --device cuda --out $(DATA)/brawl_armed.json
	$(TABLES) brawl-armed

results-strategy: $(READY) ## docs/research/strategy.md: with and without strategy encoder, three seeds; GPU, long
	$(BIN)/python benchmarks/strategy_results.py --seeds 3 --variants full recognising lstm mlp --probe-matches 80 --out $(DATA)/strategy_results.json
	$(TABLES) strategy

results-brawl-tuning: $(READY) ## docs/research/brawl.md: the runs of the search for competition; GPU, long
	$(BIN)/python benchmarks/brawl_tuning.py --device cuda
	$(TABLES) brawl-tuning

results-rocket-sim: $(READY) ## docs/worlds/rocket.md: speed of the simulator on the CPU, beside RocketSim
	$(BIN)/python benchmarks/speed.py sim --world rocket
	$(TABLES) rocket-sim

results-rocket-sim-cuda: $(READY) ## the same; GPU
	$(BIN)/python benchmarks/speed.py sim --world rocket --device cuda
	$(TABLES) rocket-sim

results-render: $(READY) ## docs/worlds/brawl.md, docs/worlds/rocket.md: pictures per second
	$(BIN)/python benchmarks/render.py --all --json > $(DATA)/render.json.new
	mv $(DATA)/render.json.new $(DATA)/render.json
	$(TABLES) render

results-learn: $(READY) ## docs/research/learner.md: env steps per second beside Stable-Baselines3
	$(BIN)/python benchmarks/speed.py learn --device cpu --repeats 1
	$(TABLES) learn

results-learn-cuda: $(READY) ## the same without the peers; GPU
	$(BIN)/python benchmarks/speed.py learn --device cuda
	$(TABLES) learn

results-peers: $(READY) ## README.md, docs/research/learner.md: beside the peers that have an environment in .peers/
	PYTHONPATH=. $(BIN)/python benchmarks/peers.py --peer-python $(foreach peer,$(PEERS),$(patsubst %,$(peer)=%,$(wildcard .peers/$(peer)/bin/python)))
	$(TABLES) peers

results-gymnasium-curves: $(READY) ## docs/research/learner.md: learning curves beside Stable-Baselines3, five seeds; long
	rm -f $(DATA)/curves.csv
	$(BIN)/python benchmarks/gymnasium_curves.py --seeds 5
	$(TABLES) gymnasium-curves

# Clashes of the trained base are about 40 frames apart, of weak agents 200: a sequence has to hold several.
CLASH := PYTHONPATH=. $(BIN)/python benchmarks/clash.py --device cuda --judge-on cpu --lanes 18
results-gauntlet-clash: $(READY) ## docs/results/strategy.md: agents with and without memory where choices are hidden in brawl; GPU
	$(CLASH) --steps base members --num-envs 8192 --set policy.canonical=true policy.activation=relu ppo.n_steps=16
	$(CLASH) --steps ceiling --set policy.canonical=true policy.activation=relu ppo.n_steps=256 ppo.sequence_length=256 ppo.batch_size=32768
	$(CLASH) --device cpu --steps answers
	$(TABLES) gauntlet-clash
	PYTHONPATH=. $(BIN)/python benchmarks/strategy_plots.py

results-gymnasium-presets: $(READY) ## docs/research/learner.md: presets of Gymnasium's environments beside SB3 with the Zoo's settings; long
	rm -f $(DATA)/gymnasium_presets.csv
	$(BIN)/python benchmarks/gymnasium_presets.py --seeds 3
	$(TABLES) gymnasium-presets

results-learner-device: $(READY) ## docs/research/learner.md: games on the CPU, learner on the CPU or on a GPU; GPU
	$(BIN)/python benchmarks/learner_device.py
	$(TABLES) learner-device

results-roshambo-population: $(READY) ## docs/worlds/roshambo.md: bots scored against the 43 bots of OpenSpiel
	$(BIN)/python benchmarks/roshambo_population.py openspiel:greenberg openspiel:iocainebot meta random openspiel:rockbot \
	  --matches 10 --json > $(DATA)/roshambo_population.json.new
	mv $(DATA)/roshambo_population.json.new $(DATA)/roshambo_population.json
	$(TABLES) roshambo-population

results-roshambo: $(READY) ## docs/worlds/roshambo.md: agents with and without memory against the 43 bots, three seeds; GPU, many cores, long
	$(BIN)/python benchmarks/roshambo_training.py --device cuda --lanes 3
	$(TABLES) roshambo
	PYTHONPATH=. $(BIN)/python benchmarks/strategy_plots.py

results-league-scaling: $(READY) ## docs/research/league-scaling.md: what a league of 64 GPUs would need
	$(BIN)/python benchmarks/league_scaling.py --json > $(DATA)/league_scaling.json.new
	mv $(DATA)/league_scaling.json.new $(DATA)/league_scaling.json
	$(TABLES) league-scaling

results-league: $(READY) ## docs/concepts/opponents.md: what many past selves cost
	$(BIN)/python benchmarks/league.py --json > $(DATA)/league.json.new
	mv $(DATA)/league.json.new $(DATA)/league.json
	$(TABLES) league

results-speedrun: $(READY) ## docs/speedrun.md: adds a row for brawl, rocket and mimic; long
	for world in brawl rocket mimic; do $(BIN)/python benchmarks/speedrun.py $$world || exit 1; done
	$(TABLES) speedrun

results-checkpoints: $(READY) ## docs/research/learner.md: how long a checkpoint stops a run
	$(BIN)/python benchmarks/checkpoint_cost.py --json > $(DATA)/checkpoint_cost_cpu.json.new
	mv $(DATA)/checkpoint_cost_cpu.json.new $(DATA)/checkpoint_cost_cpu.json
	$(TABLES) checkpoints

results-startup: $(READY) ## docs/research/learner.md: from the command to the first update, by world and device
	$(BIN)/python benchmarks/startup.py --cold --warm --json $(DATA)/startup.json
	$(TABLES) startup

results-together: $(READY) ## docs/howto/scale.md: what 16 learners cost in turns, one after the other, and as commands
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/together.py --json $(DATA)/together_cpu.json.new
	mv $(DATA)/together_cpu.json.new $(DATA)/together_cpu.json
	$(TABLES) together

results-together-cuda: $(READY) ## docs/howto/scale.md: env steps per second of 1 learner and of 16 in turns; GPU
	$(BIN)/python benchmarks/together.py --device cuda --json $(DATA)/together_h200.json.new
	mv $(DATA)/together_h200.json.new $(DATA)/together_h200.json
	$(TABLES) together-cuda

results-logging: $(READY) ## docs/concepts/training.md: what logging costs
	$(BIN)/python benchmarks/logging_cost.py --json > $(DATA)/logging.json.new
	mv $(DATA)/logging.json.new $(DATA)/logging.json
	$(TABLES) logging

results-city-screens: $(READY) ## docs/howto/city-profile.md: real games on their screens; needs micropolis and xvfb
	$(BIN)/python benchmarks/city_screens.py --out $(DATA)/city_screens.json
	$(TABLES) city-screens

results-city-vision: $(READY) ## docs/research/city.md: what perception reads right, and how fast; needs micropolis and xvfb
	$(BIN)/python benchmarks/city_vision.py --out $(DATA)/city_vision.json
	$(TABLES) city-vision

results-city-micropolis: $(READY) ## docs/research/city.md: an hour of Micropolis with faults; needs micropolis and xvfb
	PYTHONPATH=. $(BIN)/python benchmarks/city_micropolis.py --folder runs/city-micropolis --out $(DATA)/city_micropolis.json
	$(TABLES) city-micropolis

results-city-guided: $(READY) ## docs/research/city.md: Micropolis with its plan as a guide, three seeds; needs micropolis and xvfb
	PYTHONPATH=. $(BIN)/python benchmarks/city_micropolis.py --minutes 60 --cities 24 --same-kinds --folder runs/city-guided --out $(DATA)/city_guided.json
	for seed in 1 2; do PYTHONPATH=. $(BIN)/python benchmarks/city_micropolis.py --minutes 60 --cities 24 --agent-alone \
	  --folder runs/city-guided-$$seed --out $(DATA)/city_guided_$$seed.json -- seed=$$seed || exit 1; done
	$(TABLES) city-guided

HOUR := --minutes 61 --every-s 90 --cities 8

results-city-lincity: $(READY) ## docs/research/city.md: an hour of LinCity-NG with faults; needs lincity-ng and xvfb
	PYTHONPATH=. $(BIN)/python benchmarks/city_game.py --game lincity $(HOUR) --folder runs/city-lincity --out $(DATA)/city_lincity.json \
	  -- total_env_steps=3_600
	$(TABLES) city-lincity

results-city-opencity: $(READY) ## docs/research/city.md: an hour of OpenCity with faults; needs opencity, libfaketime and xvfb
	PYTHONPATH=. $(BIN)/python benchmarks/city_game.py --game opencity $(HOUR) --folder runs/city-opencity --out $(DATA)/city_opencity.json \
	  -- total_env_steps=2_400 world.num_envs=2
	$(TABLES) city-opencity

results-city-strategies: $(READY) ## docs/worlds/city.md: scripted strategies in the embedded game
	PYTHONPATH=. $(BIN)/python benchmarks/city_strategies.py --csv $(DATA)/city_strategies.csv
	$(TABLES) city-strategies

results-city-quick: $(READY) ## docs/research/city.md: the preset quick, three seeds, beside scripted players; long
	$(BIN)/python benchmarks/city_results.py --preset quick --seeds 3 --out $(DATA)/city_quick.json
	$(TABLES) city-quick

results-city-variants: $(READY) ## docs/research/city.md: variants of quick with the tax, three seeds each; long
	PYTHONPATH=. $(BIN)/python benchmarks/city_modes.py guided tax --lanes $$(nproc) --out $(DATA)/city_variants.json
	$(TABLES) city-variants

results-city-modes: $(READY) ## docs/research/city.md: every mode, three seeds each; long
	PYTHONPATH=. $(BIN)/python benchmarks/city_modes.py --lanes $$(nproc) --out $(DATA)/city_modes.json
	PYTHONPATH=. $(BIN)/python benchmarks/city_modes.py --out $(DATA)/city_modes.json --picture docs/images/city-modes.png
	$(TABLES) city-modes

results-mimic-walk: $(READY) ## docs/research/mimic.md: the preset walk, three seeds; long
	$(BIN)/python benchmarks/mimic_results.py --preset walk --seeds 3 --out $(DATA)/mimic_walk.json --picture docs/images/mimic-gait.png
	$(TABLES) mimic-walk

results-mimic-walk-3d: $(READY) ## the same of the preset walk-3d; long
	$(BIN)/python benchmarks/mimic_results.py --preset walk-3d --seeds 3 --out $(DATA)/mimic_walk_3d.json
	$(TABLES) mimic-walk-3d

results-mimic-walk-gpu: $(READY) ## the same of the preset walk-gpu, on a GPU
	$(BIN)/python benchmarks/mimic_results.py --preset walk-gpu --seeds 3 --out $(DATA)/mimic_walk_gpu.json -- world.device=cuda
	$(BIN)/python benchmarks/mimic_results.py --preset walk-3d-gpu --seeds 3 --out $(DATA)/mimic_walk_3d_gpu.json -- world.device=cuda
	$(TABLES) mimic-walk-gpu

results-mimic-motions: $(READY) ## docs/research/mimic.md: every motion of the package, and one policy for all; DEVICE=cuda on a GPU, else hours
	$(BIN)/python benchmarks/mimic_motions.py --device $(or $(DEVICE),cpu) $(if $(filter cuda,$(DEVICE)),--steps 30_000_000) --out $(DATA)/mimic_motions.json
	$(TABLES) mimic-motions

results-mimic-slow: $(READY) ## docs/research/mimic.md: slow walking with schedules over a short and the usual number of env steps; long
	$(BIN)/python benchmarks/mimic_slow.py --out $(DATA)/mimic_slow.json
	$(TABLES) mimic-slow

results-mimic-balance: $(READY) ## docs/research/mimic.md: which motions are hard to balance in
	$(BIN)/python benchmarks/mimic_balance.py --json $(DATA)/mimic_balance.json
	$(TABLES) mimic-balance

results-mimic-gpu: $(READY) ## docs/research/mimic.md: control steps per second on a GPU
	$(BIN)/python benchmarks/mimic_gpu.py --json $(DATA)/mimic_gpu.json
	$(TABLES) mimic-gpu

results-mimic-parity: $(READY) ## docs/research/mimic.md: MuJoCo Warp beside MuJoCo; DEVICE=cuda on a GPU, AGENTS="..." for other agents
	$(BIN)/python benchmarks/mimic_parity.py $(AGENTS) --device $(or $(DEVICE),cpu) --json $(DATA)/mimic_parity.json
	$(TABLES) mimic-parity

results-mimic-gait: $(READY) ## docs/research/mimic.md: the gait of the shipped walker against people, and pushes
	$(BIN)/python benchmarks/mimic_gait.py --walks 40 --json $(DATA)/mimic_gait.json --picture docs/images/mimic-people.png
	$(TABLES) mimic-gait

results-mimic-physics: $(READY) ## docs/research/mimic.md: integrators and step lengths
	$(BIN)/python benchmarks/mimic_physics.py --json $(DATA)/mimic_physics.json
	$(TABLES) mimic-physics

results-browser: $(READY) ## docs/howto/share.md: the same game in node and Chromium as in Python, 1,000,000 frames each
	PYTHONPATH=. $(BIN)/python benchmarks/browser_parity.py --frames 1000000
	$(TABLES) browser

results-mimic-browser: $(READY) ## the page of `ludus share walker`: how far its walker is from MuJoCo's; update MEASURED in mimic/browser.py
	PYTHONPATH=. $(BIN)/python benchmarks/browser_walker.py --json $(DATA)/mimic_browser.json

results-mimic-sim: $(READY) ## docs/research/mimic.md: control steps per second beside Walker2d-v5
	$(BIN)/python benchmarks/speed.py sim --world mimic
	$(TABLES) mimic-sim

results-mimic-learn: $(READY) ## docs/research/mimic.md: env steps per second beside Stable-Baselines3
	$(BIN)/python benchmarks/learn_speed.py --world mimic > $(DATA)/mimic_learn.json.new
	mv $(DATA)/mimic_learn.json.new $(DATA)/mimic_learn.json
	$(TABLES) mimic-learn

results-mimic-algorithms: $(READY) ## docs/research/mimic.md: PPO, SAC and TD3 by env steps and by seconds; long
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/sample_efficiency.py mimic \
		--preset walk --preset sac:walk-sac --preset td3:walk-td3 --env-steps 80000 --evaluations 4 --seeds 2 \
		--numbers mean_return imitation distance_m stable_walks --set world.settings.threads=1 \
		--set ppo:world.num_envs=16 --set ppo:ppo.n_steps=128 --set ppo:ppo.batch_size=256 \
		--set ppo:total_env_steps=320000 --out $(DATA)/mimic_algorithms
	$(TABLES) mimic-algorithms
