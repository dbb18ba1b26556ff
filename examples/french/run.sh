#!/usr/bin/env bash
# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
#
# A model for one's own language, from text to a page in the browser:
#   examples/french/run.sh [DIR]      (3 minutes on two cores, and the download)
# French from the Debian Handbook, cased, accents kept. Needs apt-get and dpkg
# for the text and curl for the last step; PYTHON says which Python has
# electra_tf. The model is far too small to be good: this is the way, not a
# result.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
OUT=$(realpath -m "${1:-runs/french}")
PYTHON=${PYTHON:-$PWD/.venv/bin/python}
STEPS=${STEPS:-600}
electra() { "$PYTHON" -m electra_tf "$@"; }
say() { printf '\n== %s\n' "$*"; }

say "Text"
mkdir -p "$OUT"/{package,corpus,finetuning_data/noms}
if [ ! -e "$OUT/corpus/handbook.txt" ]; then
  (cd "$OUT/package" && apt-get -qq download debian-handbook)
  dpkg-deb -x "$OUT"/package/debian-handbook_*.deb "$OUT/package"
  "$PYTHON" examples/french/text.py \
    "$OUT/package/usr/share/doc/debian-handbook/html/fr-FR" \
    "$OUT/corpus/handbook.txt" "$OUT/finetuning_data/noms"
fi

say "Vocabulary: cased, accents kept"
[ -e "$OUT/vocab.txt" ] || electra build_vocab "$OUT/corpus" \
  --output "$OUT/vocab.txt" --vocab_size 4000 --no-lower-case

say "Records"
"$PYTHON" build_pretraining_dataset.py --corpus-dir "$OUT/corpus" \
  --vocab-file "$OUT/vocab.txt" --output-dir "$OUT/pretrain_tfrecords" \
  --max-seq-length 64 --num-shards 8 --held-out-fraction 0.05 \
  --split-long-lines

say "Pre-training, stopped half-way and continued"
cat > "$OUT/hparams.json" <<JSON
{"vocab_size": $(wc -l < "$OUT/vocab.txt"),
 "max_seq_length": 64, "embedding_size": 64,
 "model_hparam_overrides": {"hidden_size": 128, "num_hidden_layers": 2,
   "num_attention_heads": 2, "intermediate_size": 512,
   "max_position_embeddings": 128},
 "generator_hidden_size": 0.5, "learning_rate": 1e-3,
 "num_warmup_steps": $((STEPS / 10)),
 "train_batch_size": 32, "num_train_steps": $STEPS,
 "save_checkpoints_steps": $((STEPS / 2)), "eval_every_n_steps": $STEPS,
 "log_every_n_steps": 100}
JSON
PRETRAIN=("$PYTHON" run_pretraining.py --data-dir "$OUT" --model-name french
  --hparams "$OUT/hparams.json")
MODEL=$OUT/models/french
if [ ! -e "$MODEL/model.ckpt-$STEPS.index" ]; then
  "${PRETRAIN[@]}" & RUNNING=$!
  until [ -e "$MODEL/model.ckpt-$((STEPS / 2)).index" ]; do
    kill -0 $RUNNING; sleep 1
  done
  kill -TERM $RUNNING; wait $RUNNING || echo "stopped: status $?"
fi
"${PRETRAIN[@]}"

say "Two steps of the run, side by side"
electra compare_checkpoints "$MODEL/model.ckpt-0" "$MODEL/model.ckpt-$STEPS" \
  --text "$OUT/corpus/handbook.txt" || { [ $? = 1 ] && echo "They differ, as they should."; }

say "Hugging Face and back: the same"
[ -e "$OUT/french-hf" ] || electra convert_checkpoint "$MODEL" \
  "$OUT/french-hf" --output_format huggingface --strip_optimizer
electra compare_checkpoints "$MODEL" "$OUT/french-hf" \
  --text "$OUT/corpus/handbook.txt"
electra fill_mask --model "$MODEL" --text "Il faut [MASK] le fichier."

say "A tagger of names and numbers, from a JSON file"
cat > "$OUT/finetuning_data/noms/task.json" <<'JSON'
{"name": "noms", "type": "tagging", "format": "conll",
 "files": {"train": "train.txt", "dev": "dev.txt"},
 "columns": {"word": 0, "tag": -1},
 "hparams": {"fix_tagging_truncation": true}}
JSON
"$PYTHON" run_finetuning.py --data-dir "$OUT" --model-name french \
  --task_config "$OUT/finetuning_data/noms/task.json" --max_seq_length 64 \
  --learning_rate 5e-4 --num_train_epochs 2
TAGGER=$MODEL/finetuning_models/noms_model_1
printf 'Le fichier vient de Debian 11 et de Roland Mas .\n' > "$OUT/new.txt"
electra predict --model "$TAGGER" "$OUT/new.txt"

say "SavedModel, server, page"
[ -e "$OUT/exported/noms" ] || electra export_model --model "$TAGGER" \
  --output_dir "$OUT/exported/noms"
"$PYTHON" -m electra_tf serve "$OUT/exported/noms" --port 8599 & SERVER=$!
trap 'kill $SERVER 2>/dev/null || true' EXIT
until curl -fs http://127.0.0.1:8599/v1/models/noms > /dev/null; do
  kill -0 $SERVER; sleep 1
done
curl -fs http://127.0.0.1:8599/ | head -5
curl -fs http://127.0.0.1:8599/v1/models/noms:predict -d \
  '{"signature_name": "serve_text", "instances": ["Debian 11 et Roland Mas."]}'
echo
