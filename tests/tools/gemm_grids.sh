#!/bin/sh
# tests/tools/gemm_grids.sh TABLES GEMM_FIT: makes topologies/gpus/grids/*.grid and the hold-out
# results/measured/kernels/gemm-*.csv again, from the repository root.
#
# TABLES is a folder with
#   gemm_full/GPU__STACK__bf16.csv.gz   m,n,k,latency_us of ai-dynamo/aiconfigurator
#   gemm_efficiency.csv                 gpu,dtype,batch,m,n,k,tflops,pct_of_peak,source,note: tables
#                                       of several repositories in one form
#   components/float8.csv               published FP8 measurements
# GEMM_FIT is the program built from gemm_fit.c. The same tables give the same files. Peaks,
# bandwidths and SM counts are those of topologies/gpus (data sheets).
set -eu
tables=$1
gemm_fit=$2
grids=topologies/gpus/grids
held=results/measured/kernels
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$grids" "$held"

# start GPU "source (licence)"
start() {
    gpu=$1
    {
        echo "gemm-grid 1"
        echo "gpu $gpu"
        echo "source $2"
        echo "# made by tests/tools/gemm_grids.sh; format and meaning: sim/cluster/gemm_grid.h"
    } >"$grids/$gpu.grid"
    echo "gpu,kernel,impl,pass,dtype,causal,batch,m,n,k,bytes,us,source,licence" >"$held/gemm-$gpu.csv"
}

# fit DTYPE PEAK_TFLOPS HBM_GBPS SM AXES HOLD_OUT WEIGHT SOURCE LICENCE [HELD_NAME [N_MULTIPLE]], table
# on stdin
fit() {
    "$gemm_fit" "$1" "$2" "$3" "$4" "$5" "$6" "$7" "${11-1}" "$work/held" >>"$grids/$gpu.grid"
    awk -F, -v gpu="${10-$gpu}" -v dtype="$1" -v source="$8" -v licence="$9" '{
        printf "%s,gemm,,forward,%s,0,1,%s,%s,%s,0,%s,%s,%s\n", gpu, dtype, $1, $2, $3, $4, source,
            licence
    }' "$work/held" >>"$held/gemm-$gpu.csv"
}

full() {
    zcat "$tables/gemm_full/$1__bf16.csv.gz" | tail -n +2
}

# rows GPU DTYPE SOURCE [NOTE]: lines m,n,k,us; of several kernels for one shape the fastest
rows() {
    awk -F, -v gpu="$1" -v dtype="$2" -v source="$3" -v note="${4-}" '
        $1 == gpu && $2 == dtype && $3 == 1 && index($9, source) && index($0, note) {
            us = 2 * $4 * $5 * $6 / $7 / 1e6
            shape = $4 "," $5 "," $6
            if (!(shape in best) || us < best[shape])
                best[shape] = us
        }
        END {
            for (shape in best)
                printf "%s,%.7g\n", shape, best[shape]
        }' "$tables/gemm_efficiency.csv" | LC_ALL=C sort
}

aic="ai-dynamo/aiconfigurator 095f58a"
aic_licence="Apache-2.0 (c) NVIDIA"
neusight="sitar-lab/NeuSight 6945927"
and_neusight="; fp32: $neusight (MIT-style)"

# aic_gpu GPU FILE STACK BF16 HBM SM [MORE]: a full bf16 grid; MORE: what follows in the file, for its
# source line. The fp8 tables of the same collection time vLLM's whole FP8 layer, quantising of the
# activations included (16 x 128 x 128: 5.1 us beside 2.6 us in bf16), on CUTLASS kernels; training
# calls torch._scaled_mm and casts apart, so they are not used.
aic_gpu() {
    start "$1" "$aic, $3 ($aic_licence)${7-}"
    full "$2" | fit bf16 "$4" "$5" "$6" dense/full 300 0.03 "$aic $3" "$aic_licence"
}

# torchao_fp8: not fitted to, hold-out only: GEMMs alone, tensorwise scales, fast accumulation
torchao_fp8() {
    awk -F, -v gpu="$gpu" '/GEMM only, fast_accum=True",tensorwise/ {
        printf "%s,gemm,,forward,fp8,0,1,%s,%s,%s,0,%s,pytorch/ao git log 36027d82d 2024-10,BSD-3\n", gpu,
            $6, $8, $7, $10
    }' FS='"?,"?' "$tables/components/float8.csv" >>"$held/gemm-$gpu.csv"
}

# neusight_fp32 TABLE_NAME HELD_NAME PEAK HBM SM
neusight_fp32() {
    rows "$1" fp32 NeuSight | fit fp32 "$3" "$4" "$5" widths 120 0.03 "$neusight" MIT-style "$2"
}

aic_gpu a100-sxm4-80gb A100-SXM4-80GB__sglang_0.5.10 "sglang 0.5.10" 312 2039 108 "$and_neusight"
neusight_fp32 A100-PCIE-80GB a100-pcie-80gb 19.5 1935 108
aic_gpu h100-sxm5-80gb H100-SXM5-80GB__vllm_0.24.0 "vllm 0.24.0" 989.4 3350 132 "$and_neusight"
neusight_fp32 H100-SXM5-80GB h100-sxm5-80gb 66.9 3350 132
torchao_fp8
aic_gpu h200-sxm-141gb H200-SXM__vllm_0.24.0 "vllm 0.24.0" 989.4 4800 132
aic_gpu b200-sxm B200-SXM__vllm_0.24.0 "vllm 0.24.0" 2250 8000 148
aic_gpu b300-sxm B300-SXM__vllm_0.24.0 "vllm 0.24.0" 2250 8000 148
aic_gpu gb200 GB200__vllm_0.24.0 "vllm 0.24.0" 2500 8000 152
aic_gpu l40s L40S__vllm_0.24.0 "vllm 0.24.0" 362 864 142 "$and_neusight"
neusight_fp32 L4 l4 30.3 300 58
aic_gpu rtx-pro-6000-blackwell-server RTX-PRO-6000-Blackwell-Server__vllm_0.24.0 "vllm 0.24.0" \
    467.8 1597 188

start v100-sxm2-16gb "fp16: baidu-research/DeepBench, CUDA 10.1, DGX-1 (Apache-2.0); fp32: $neusight (MIT-style)"
rows V100-SXM2-16GB fp16 DeepBench |
    fit fp16 125 900 80 coarse 30 0.03 "baidu-research/DeepBench" Apache-2.0
neusight_fp32 V100-PCIE-32GB v100-pcie-32gb 14 900 80

vidur="microsoft/vidur 7d47513"
start a40 "$vidur, layers of Llama 2 (MIT)"
rows A40 fp16 vidur | fit fp16 149.7 696 84 coarse 60 0.03 "$vidur" MIT

serving="casys-kaist/LLMServingSim 5daddb2"
start rtx-a6000 "$serving, layers of Llama 3.1 8B (MIT)"
rows A6000 fp16 LLMServingSim | fit fp16 154.8 768 84 coarse 10 0.03 "$serving" MIT
start rtx-3090 "$serving, layers of Llama 3.1 8B (MIT)"
rows RTX3090 fp16 LLMServingSim | fit fp16 71.2 936 82 coarse 10 0.03 "$serving" MIT
start rtx-4090 "$serving, layers of Llama 3.1 8B (MIT)"
rows RTX4090 bf16 LLMServingSim | fit bf16 165.2 1008 128 coarse 8 0.03 "$serving" MIT

# Times there hold a launch and a wait: the smallest GEMM, 8192 x 32 x 32 with 1 us of traffic, takes
# 33 us. That is taken off, and shapes of which it is more than half are left out.
llmcompass="PrincetonUniversity/LLMCompass 2e015fd"
start mi210 "$llmcompass, 8192 x n x n and m x 12288 x 12288, less 33 us each (BSD-3)"
rows MI210 fp16 LLMCompass | awk -F, -v OFS=, '$4 > 66 { $4 -= 33; print }' | fit fp16 181 1638 104 coarse 4 0.03 "$llmcompass" BSD-3

aiter="ROCm/aiter e404860 tuned configs"
# Widths that are no multiple of 64 (100, 200, 800) run Triton kernels there, 2 to 8 times slower than
# their neighbours: held out like the rest, not fitted to.
start mi355x "$aiter, best kernel after tuning (MIT)"
rows MI355X bf16 aiter | fit bf16 2516.6 8000 256 tuned 60 0.01 "$aiter" MIT mi355x 64
