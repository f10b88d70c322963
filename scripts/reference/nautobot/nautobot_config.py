"""Nautobot of the long tests: everything below NAUTOBOT_ROOT, on loopback and unix sockets; no reports to its vendor."""

import os

from nautobot.core.settings import *  # noqa: F403

ROOT = os.environ["NAUTOBOT_ROOT"]
REDIS = f"unix://{ROOT}/redis.sock"

SECRET_KEY = "a secret of the tests alone, which guards nothing: its server lives for a run"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "nautobot",
        "USER": "postgres",
        "HOST": ROOT,
        "CONN_MAX_AGE": 300,
    }
}
CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": f"{REDIS}?db=1",
        "OPTIONS": {"CLIENT_CLASS": "django_redis.client.DefaultClient"},
    }
}
CELERY_BROKER_URL = f"redis+socket://{ROOT}/redis.sock?virtual_host=0"
CELERY_RESULT_BACKEND = CELERY_BROKER_URL
INSTALLATION_METRICS_ENABLED = False
SANITIZER_PATTERNS = []
STATIC_ROOT = os.environ.get("NAUTOBOT_STATIC_ROOT", f"{ROOT}/static")
MEDIA_ROOT = f"{ROOT}/media"
GIT_ROOT = f"{ROOT}/git"
JOBS_ROOT = f"{ROOT}/jobs"
