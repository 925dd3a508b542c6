#!/bin/sh
# Make the kept artefacts in the working directory, which holds my_operator.py, spoiled.py and campaign.yaml.
set -e
small="--threads=1 --trainer.logger=false --trainer.val_check_interval=2 --checkpoint.every_n_train_steps=2
  --model.policy.lora.rank=1 --model.policy.lora.targets=[q_proj] --model.sampling.completions=4
  --model.sampling.max_tokens=40 --model.validation.completions=4 --model.validation.max_tokens=40
  --model.engine=InProcessEngine --model.engine.init_args.decode_batch_size=32
  --data.init_args.prompts_per_step=2 --data.init_args.train_size=64 --data.init_args.validation_size=8"
halved="--trainer.callbacks=[GRPO,my_operator.Halved]"
rlcredit fit --config configs/tiny.yaml $small "$halved" --trainer.max_steps=4 --condition=kept
rlcredit fit --config configs/tiny.yaml $small "$halved" --trainer.max_steps=6 --condition=whole
rlcredit fit --config configs/tiny.yaml $small "--trainer.callbacks=[GRPO,spoiled.Spoiled]" --trainer.max_steps=2 \
  --condition=spoiled || true
rlcredit evaluate --tasks configs/tasks/chain_sum_3_5.yaml --ckpt_path runs/kept-seed0 --against base --questions 4 \
  --completions 2 --out evaluations/kept --mlflow none
rlcredit campaign campaign.yaml --slots 1 --threads 1
rlcredit card my_operator.py --budget batch --mlflow none
mv runs/whole-seed0/record.jsonl whole.jsonl
rm -rf runs/whole-seed0 runs/spoiled-seed0/checkpoints runs/spoiled-seed0/adapter runs/*/checkpoints/step=*
rm -rf campaigns/kept/*/*/checkpoints campaigns/kept/*/*/adapter cards/*/batch/truth.pt
find . -name lock -delete
find . -name '*.png' -delete
find . -type d -name completions -prune -exec rm -r {} +
find campaigns -name process.json -delete
tiny=$(python -c "import rlcredit, pathlib; print(pathlib.Path(rlcredit.__file__).parent / 'tiny')")
sed -i "s#$tiny#tiny#" runs/kept-seed0/adapter/adapter_config.json runs/kept-seed0/adapter/README.md
