"""vLLM's names of its serving engine, those of its first and second generation (docs: "Production metrics")."""

from typing import Final

from exporters.foreign.names import Name, NameMap
from pipeline.catalog.metrics import ROLLOUT_ENGINE

VLLM: Final = (
    NameMap(
        "vLLM",
        ROLLOUT_ENGINE,
        {"engine": ("{target}/{engine}", "{target}")},
        (
            Name("vllm:num_requests_running", "rollout_engine.running"),
            Name("vllm:num_requests_waiting", "rollout_engine.waiting"),
            Name("vllm:kv_cache_usage_perc", "rollout_engine.cache.used"),  # a ratio, whatever the name says
            Name("vllm:gpu_cache_usage_perc", "rollout_engine.cache.used"),
            Name("vllm:num_preemptions_total", "rollout_engine.preemptions"),
            Name("vllm:prompt_tokens_total", "rollout_engine.tokens.prompt"),
            Name("vllm:generation_tokens_total", "rollout_engine.tokens.generated"),
            Name("vllm:request_success_total", "rollout_engine.finished"),
        ),
        attributes={"model": ("{model_name}",)},
        since="process_start_time_seconds",
    ),
)
